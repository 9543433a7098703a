package schemas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// maxAnswerBytes bounds what is read of one answer of a registry.
const maxAnswerBytes = 4 << 20

// answerBytes is the least that the values of an answer take on average.
const answerBytes = 16

// Registry is a client of a Confluent-compatible schema registry. It is safe for concurrent use.
type Registry struct {
	client    *sr.Client
	transport *http.Transport
	urls      string
	timeout   time.Duration // for all requests of one call
}

// NewRegistry returns a client of the registry at one or more addresses, tried in turn. An address without a scheme is
// taken as http. Each request has five seconds, or what is left of its context.
func NewRegistry(urls ...string) (*Registry, error) { return NewRegistryAs(secure.HTTP{}, urls...) }

// NewRegistryAs is NewRegistry for a registry that asks who asks, or has certificates of its own.
func NewRegistryAs(access secure.HTTP, urls ...string) (*Registry, error) {
	full := make([]string, 0, len(urls))
	for _, u := range urls {
		if !strings.Contains(u, "://") {
			u = "http://" + u
		}
		if err := secure.CheckURL(u); err != nil {
			return nil, fmt.Errorf("schema registry: the address %w", err)
		}
		full = append(full, strings.TrimRight(u, "/"))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	over, err := access.Client(transport)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	over.Timeout, over.Transport = askTimeout, boundedBody{over.Transport}
	client, err := sr.NewClient(sr.URLs(full...), sr.UserAgent("smartfeed"), sr.HTTPClient(over))
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &Registry{client: client, transport: transport, urls: strings.Join(full, ","), timeout: 3 * askTimeout}, nil
}

// Close closes the connections that are not in use. The registry can be used after it.
func (r *Registry) Close() { r.transport.CloseIdleConnections() }

// Register makes schema the newest of subject and returns its id; if it is there already, it returns the id it has.
//
// A schema that is new to the subject is first held against every schema the subject has: records of all of them may
// still be in the topic. If it can not read one of them, nothing is registered. Then the registry is told to hold what
// others register under the subject against all of it, too (BACKWARD_TRANSITIVE), unless it is as strict already.
func (r *Registry) Register(ctx context.Context, subject, schema string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if _, err := parseSchema(schema); err != nil {
		return 0, fmt.Errorf("register %s: %w", subject, err)
	}
	text := sr.Schema{Schema: schema, Type: sr.TypeAvro}
	known, err := r.client.LookupSchema(ctx, subject, text)
	if err == nil {
		return known.ID, nil
	}
	if !isMissing(err) {
		return 0, r.failed("look up "+subject, err)
	}
	if err := r.checkAll(ctx, subject, schema); err != nil {
		return 0, err
	}
	id, err := r.client.RegisterSchema(ctx, subject, text, -1, -1)
	if err != nil {
		return 0, r.failed("register "+subject, err)
	}
	return id, r.guard(ctx, subject)
}

// guard sets the compatibility of a subject. If that fails the schema is registered all the same, and whoever reads the
// error can set it by hand: our own check does not rest on it.
func (r *Registry) guard(ctx context.Context, subject string) error {
	if r.guards(ctx, subject) {
		return nil
	}
	set := sr.SetCompatibility{Level: sr.CompatBackwardTransitive}
	err := r.client.SetCompatibility(ctx, set, subject)[0].Err
	if err != nil && !r.guards(ctx, subject) { // otherwise another process has set it meanwhile
		return r.failed(fmt.Sprintf("set the compatibility of %s to %s", subject, set.Level), err)
	}
	return nil
}

// guards says whether the registry tells that it holds new versions of a subject against all that it has.
func (r *Registry) guards(ctx context.Context, subject string) bool {
	got := r.client.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0]
	return got.Err == nil && (got.Level == sr.CompatBackwardTransitive || got.Level == sr.CompatFullTransitive)
}

// Lookup returns the id that a schema has under a subject. It registers nothing: of a schema that is new there, known is
// false, and err says whether Register would refuse it.
func (r *Registry) Lookup(ctx context.Context, subject, schema string) (id int, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	found, err := r.client.LookupSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	switch {
	case err == nil:
		return found.ID, true, nil
	case !isMissing(err):
		return 0, false, r.failed("look up "+subject, err)
	}
	return 0, false, r.checkAll(ctx, subject, schema)
}

// RegistrySettings are those of a registry for subjects that have none of their own, in the registry's words. Empty: it
// answers, but does not tell.
type RegistrySettings struct{ Mode, Compatibility string }

// Settings asks the registry for them. It fails if the registry does not answer.
func (r *Registry) Settings(ctx context.Context) (RegistrySettings, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var s RegistrySettings
	if _, err := r.client.Subjects(ctx); err != nil {
		return s, r.failed("list subjects", err)
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
		return r.failed("list schemas of "+subject, err)
	}
	var problems []error
	for _, o := range old {
		if err := CheckBackward(schema, o.Schema.Schema); err != nil {
			problems = append(problems, fmt.Errorf("version %d (id %d): %w", o.Version, o.ID, err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("register %s: the schema can not read what was written with an older one; "+
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
		return "", r.failed(fmt.Sprintf("get schema %d", id), err)
	case s.Type != sr.TypeAvro:
		return "", badf("schema %d is %s, not Avro", id, s.Type)
	case len(s.References) > 0:
		return "", badf("schema %d refers to other schemas, which is not supported", id)
	}
	return s.Schema, nil
}

// ErrRegistryAway says that a registry cannot be reached, is out of order, or does not let this client in: that another
// question would end likewise.
var ErrRegistryAway = errors.New("the schema registry is of no help")

func (r *Registry) failed(what string, err error) error {
	var answer *sr.ResponseError
	switch {
	case !errors.As(err, &answer):
		return fmt.Errorf("%s at schema registry %s: %w: %w", what, r.urls, ErrRegistryAway, err)
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden, answer.StatusCode >= 500:
		return fmt.Errorf("%s at schema registry %s: %w: status %d: %w", what, r.urls, ErrRegistryAway, answer.StatusCode, err)
	}
	return fmt.Errorf("%s at schema registry %s: %w", what, r.urls, err)
}

// isMissing says that the registry answered, and that it has no such subject, version or schema.
func isMissing(err error) bool {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.ErrorCode {
	case sr.ErrSubjectNotFound.Code, sr.ErrVersionNotFound.Code, sr.ErrSchemaNotFound.Code:
		return true
	}
	return false
}

// boundedBody refuses answers that are longer than any schema, or take too much memory once they are decoded.
type boundedBody struct{ next http.RoundTripper }

func (b boundedBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswerBytes))
	if err == nil {
		err = jsonbound.Check(text, maxAnswerBytes/answerBytes)
	}
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
