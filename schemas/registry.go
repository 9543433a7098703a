package schemas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// maxResponseBytes bounds the size of one response of a registry.
const maxResponseBytes = 4 << 20

// minValueBytes is the minimum average size of the values of a response.
const minValueBytes = 16

// Registry is a client of a Confluent-compatible schema registry. It is safe for concurrent use.
type Registry struct {
	client    *sr.Client
	transport *http.Transport
	urls      string
	timeout   time.Duration // for all requests of one call
}

// NewRegistry returns a client of the registry at one or more addresses, which it tries in turn. An address without a
// scheme uses http. Each request has a timeout of five seconds, or the rest of its context's deadline if that is shorter.
func NewRegistry(urls ...string) (*Registry, error) { return NewRegistryAs(secure.HTTP{}, urls...) }

// NewRegistryAs is NewRegistry for a registry that requires authentication or has its own certificates.
func NewRegistryAs(access secure.HTTP, urls ...string) (*Registry, error) {
	full := make([]string, 0, len(urls))
	for _, u := range urls {
		if !strings.Contains(u, "://") {
			u = "http://" + u
		}
		if err := secure.CheckURL(u); err != nil {
			return nil, fmt.Errorf("schema registry: address: %w", err)
		}
		full = append(full, strings.TrimRight(u, "/"))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	over, err := access.Client(transport)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	over.Timeout, over.Transport = requestTimeout, boundedBody{over.Transport}
	client, err := sr.NewClient(sr.URLs(full...), sr.UserAgent("smartfeed"), sr.HTTPClient(over))
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &Registry{client: client, transport: transport, urls: strings.Join(full, ","), timeout: 3 * requestTimeout}, nil
}

// Close closes idle connections. The registry can be used afterwards.
func (r *Registry) Close() { r.transport.CloseIdleConnections() }

// Register makes schema the newest version of subject and returns its id. If the schema is already registered, Register
// returns its existing id. The schema must be one of this program, because its defaults are trusted.
//
// Register first checks a new schema against every schema of the subject, because the topic may contain records of all of
// them. If it cannot read one of them, nothing is registered. Register then sets the subject's compatibility to
// BACKWARD_TRANSITIVE, unless it is at least as strict, so that the registry checks the schemas of other clients, too.
func (r *Registry) Register(ctx context.Context, subject, schema string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if _, err := parseReader(schema); err != nil {
		return 0, fmt.Errorf("register %s: %w", subject, err)
	}
	id, known, err := r.Lookup(ctx, subject, schema)
	if known || err != nil {
		return id, err
	}
	id, err = r.client.RegisterSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro}, -1, -1)
	if err != nil {
		return 0, r.wrapError("register "+subject, err)
	}
	return id, r.ensureCompatibility(ctx, subject)
}

// ensureCompatibility sets the compatibility of a subject. If that fails, the schema stays registered, and an operator can set it:
// the check of Register does not depend on it.
func (r *Registry) ensureCompatibility(ctx context.Context, subject string) error {
	if r.isCompatibilityEnforced(ctx, subject) {
		return nil
	}
	set := sr.SetCompatibility{Level: sr.CompatBackwardTransitive}
	err := r.client.SetCompatibility(ctx, set, subject)[0].Err
	if err != nil && !r.isCompatibilityEnforced(ctx, subject) { // otherwise another process has set it in the meantime
		return r.wrapError(fmt.Sprintf("set the compatibility of %s to %s", subject, set.Level), err)
	}
	return nil
}

// isCompatibilityEnforced reports whether the registry checks new versions of a subject against all existing ones.
func (r *Registry) isCompatibilityEnforced(ctx context.Context, subject string) bool {
	got := r.client.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0]
	return got.Err == nil && (got.Level == sr.CompatBackwardTransitive || got.Level == sr.CompatFullTransitive)
}

// Lookup returns the id of a schema under a subject. It registers nothing. If the schema is new there, known is false, and
// err is the error that Register would return for it.
func (r *Registry) Lookup(ctx context.Context, subject, schema string) (id int, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	found, err := r.client.LookupSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	switch {
	case err == nil:
		return found.ID, true, nil
	case !isMissing(err):
		return 0, false, r.wrapError("look up "+subject, err)
	}
	return 0, false, r.checkAll(ctx, subject, schema)
}

// RegistrySettings are a registry's default settings for subjects, as the registry names them. An empty setting is one that
// the registry does not report.
type RegistrySettings struct{ Mode, Compatibility string }

// Settings returns the registry's default settings. It returns an error if the registry does not respond.
func (r *Registry) Settings(ctx context.Context) (RegistrySettings, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var s RegistrySettings
	if _, err := r.client.Subjects(ctx); err != nil {
		return s, r.wrapError("list subjects", err)
	}
	if got := r.client.Compatibility(ctx); len(got) == 1 && got[0].Err == nil {
		s.Compatibility = got[0].Level.String()
	}
	if got := r.client.Mode(ctx); len(got) == 1 && got[0].Err == nil {
		s.Mode = got[0].Mode.String()
	}
	return s, nil
}

func (r *Registry) checkAll(ctx context.Context, subject, schema string) error {
	old, err := r.client.Schemas(ctx, subject)
	if err != nil {
		if isMissing(err) {
			return nil // the subject is new
		}
		return r.wrapError("list schemas of "+subject, err)
	}
	var problems []error
	for _, o := range old {
		if err := checkBackward(schema, o.Schema.Schema); err != nil {
			problems = append(problems, fmt.Errorf("version %d (id %d): %w", o.Version, o.ID, err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("register %s: the schema cannot read records of an older one; "+
			"give new fields a default and keep the types of old ones, or use another topic: %w",
			subject, errors.Join(problems...))
	}
	return nil
}

// SchemaByID returns the text of an Avro schema; see SchemaSource for its errors.
func (r *Registry) SchemaByID(ctx context.Context, id int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s, err := r.client.SchemaByID(ctx, id)
	switch {
	case isMissing(err):
		return "", fmt.Errorf("schema %d: %w", id, ErrNoSchema)
	case err != nil:
		return "", r.wrapError(fmt.Sprintf("get schema %d", id), err)
	case s.Type != sr.TypeAvro:
		return "", badf("schema %d is %s, not Avro", id, s.Type)
	case len(s.References) > 0:
		return "", badf("schema %d refers to other schemas, which is not supported", id)
	}
	return s.Schema, nil
}

// ErrRegistryUnavailable is returned when a registry cannot be reached, fails, or denies access. Another request would
// fail, too.
var ErrRegistryUnavailable = errors.New("the schema registry is unavailable")

func (r *Registry) wrapError(what string, err error) error {
	answer, ok := errors.AsType[*sr.ResponseError](err)
	switch {
	case !ok:
		return fmt.Errorf("%s at schema registry %s: %w: %w", what, r.urls, ErrRegistryUnavailable, err)
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden, answer.StatusCode >= 500:
		return fmt.Errorf("%s at schema registry %s: %w: status %d: %w", what, r.urls, ErrRegistryUnavailable, answer.StatusCode, err)
	}
	return fmt.Errorf("%s at schema registry %s: %w", what, r.urls, err)
}

// isMissing reports whether the registry responded that the subject, version or schema does not exist.
func isMissing(err error) bool {
	answer, ok := errors.AsType[*sr.ResponseError](err)
	missing := []int{sr.ErrSubjectNotFound.Code, sr.ErrVersionNotFound.Code, sr.ErrSchemaNotFound.Code}
	return ok && slices.Contains(missing, answer.ErrorCode)
}

// boundedBody rejects responses that are longer than any schema, or that need too much memory when decoded.
type boundedBody struct{ next http.RoundTripper }

func (b boundedBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxResponseBytes))
	if err == nil {
		err = jsonbound.Check(text, maxResponseBytes/minValueBytes)
	}
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
