package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/internal/secure"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/logtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/otlptest"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// canary is in every secret of TestSecrets_AreInNoOutput. It has 32 bytes, the minimum for token secrets.
const canary = "canary-0123456789abcdef012345678"

// echo is an external server that rejects requests and repeats the received credentials in its response.
type echo struct {
	url string

	mu       sync.Mutex
	received []string
	well     []byte // body of the first response, which accepts the request; nil: reject the first one, too
}

func newEcho(t *testing.T, well []byte) *echo {
	t.Helper()
	e := &echo{well: well}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// ServeHTTP rejects all requests, except the first if well is set.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	authorization := r.Header.Get("Authorization")
	if basic, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(authorization, "Basic ")); err == nil {
		authorization += " " + string(basic)
	}
	received := r.URL.String() + " " + authorization
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, received)
	if e.well != nil && len(e.received) == 1 {
		_, _ = w.Write(e.well)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintf(w, `{"error_code":401,"message":%q}`, received)
}

// sawCanary reports whether a rejected request contained the canary.
func (e *echo) sawCanary() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.well != nil && len(e.received) < 2 {
		return false
	}
	return slices.ContainsFunc(e.received, func(text string) bool { return strings.Contains(text, canary) })
}

// someKeys returns a JSON web key set.
func someKeys(t *testing.T) []byte {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	point, err := key.PublicKey.Bytes() // 4, then both coordinates
	must.OK(t, err)
	text := base64.RawURLEncoding.EncodeToString
	return fmt.Appendf(nil, `{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"1","x":%q,"y":%q}]}`, text(point[1:33]), text(point[33:]))
}

// setSecrets sets each Secret below a value to the canary, and returns their number.
func setSecrets(v reflect.Value) (n int) {
	if v.Type() == reflect.TypeFor[secure.Secret]() {
		v.SetString(canary)
		return 1
	}
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += setSecrets(v.Field(i))
			}
		}
	}
	return n
}

// outputs collects everything that is visible to users and operators.
type outputs struct {
	t *testing.T
	logtest.Log
}

func (s *outputs) note(what, text string) {
	s.t.Helper()
	expect.Omits(s.t, text, canary, "%s", what)
	expect.Omits(s.t, text, base64.StdEncoding.EncodeToString([]byte("ada:"+canary)), "%s", what)
	fmt.Fprintf(s, "%s: %s\n", what, text)
}

// request records the whole response to a request with a token.
func (s *outputs) request(base, path, token string) {
	s.t.Helper()
	req := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodGet, base+path, nil))(s.t)
	req.Header.Set("Authorization", "Bearer "+token)
	res := must.Get(http.DefaultClient.Do(req))(s.t)
	defer res.Body.Close()
	s.note(path, fmt.Sprint(res.StatusCode, res.Header, string(must.Get(io.ReadAll(res.Body))(s.t))))
}

// The test uses every secret of the configuration, some of them with servers that reject and repeat it. No log, response,
// metric or span may contain one.
func TestSecrets_AreInNoOutput(t *testing.T) {
	t.Parallel()
	source, keys, collector := newEcho(t, nil), newEcho(t, someKeys(t)), otlptest.New(t)
	file := filepath.Join(t.TempDir(), "secret")
	must.OK(t, os.WriteFile(file, []byte(canary), 0o600))
	cfg := testConfig(t.TempDir())
	must.AtLeast(t, setSecrets(reflect.ValueOf(&cfg).Elem()), 9, "secrets")
	cfg.Tracing.Endpoint, cfg.Tracing.SampleRatio = collector.URL, 1
	cfg.Tracing.Headers = map[string]secure.Secret{"X-Key": canary}
	cfg.Tracing.Client.Password = "" // or the token
	cfg.Auth.SecretFile, cfg.Peers.SecretFile, cfg.Feed.CursorKeyFile = file, file, file
	cfg.Auth.JWKS, cfg.Auth.Audience, cfg.Auth.RefreshInterval = keys.url+"/keys?key="+canary, "smartfeed", time.Second
	cfg.Outgoing = outgoing.Config{AllowedNetworks: []string{"127.0.0.0/8"}}
	cfg.Generator.Model.URL = source.url + "/scores?key=" + canary
	cfg.Generator.ExternalSources = []generator.ExternalSource{{
		Name: "trends", Config: external.Config{URL: source.url + "/trends?key=" + canary, Timeout: time.Second}, MaxCandidates: 10, Share: 0.1,
	}}
	cfg.Admin = testchild.FreeAddress(t)
	s := &outputs{t: t}
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: errorText}
	p := startLogging(t, cfg, slog.New(slog.NewTextHandler(&s.Log, options)), everything())

	signed := func(args ...string) string {
		return newToken(t, file, append(args, "--auth.audience", "smartfeed")...)
	}
	ada, operator := signed("--user", "user:ada"), signed("--service", "ops", "--scope", strings.Join(auth.Scopes(), ","))
	base := p.url("")
	for _, path := range []string{
		"/readyz", "/v1/status", "/v1/config", "/metrics", "/v1/users/user:ada/feed", "/v1/users/user:ada/feed?cursor=x", "/v1/users/user:ada/feed/why?pin=pin:1",
		"/v1/users/user:ada/feed/state", "/v1/features", "/v1/dead-letters/kinds", "/v1/dictionary", "/v1/nothing", "/v1/openapi.json",
	} {
		for _, token := range []string{ada, operator, canary} {
			s.request(base, path, token)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=1"} {
		s.request("http://"+cfg.Admin, path, "")
	}
	eventually.True(t, "the source, the model, the key set and the collector have received requests", func() bool {
		s.request(base, "/v1/users/user:ada/feed", ada)
		posts, header := collector.Posts()
		return source.sawCanary() && keys.sawCanary() && posts > 0 && header.Get("X-Key") == canary && header.Get("Authorization") == "Bearer "+canary
	})
	collector.Says(http.StatusUnauthorized)
	eventually.True(t, "the log has the collector's error", func() bool {
		s.request(base, "/v1/users/user:ada/feed", ada)
		return s.Contains("401") && s.Contains("cannot read the key set")
	})
	p.stop()
	s.note("spans", fmt.Sprint(collector.Spans()))
	for _, token := range []string{canary, ada, operator} {
		expect.False(t, s.Contains(token), "the output contains the token %.20q", token)
	}
}

// Commands must not print a login that a server rejects and repeats, nor one for an address without a server.
func TestSecrets_AreInNoErrorOfCommands(t *testing.T) {
	t.Parallel()
	refusing := newEcho(t, nil)
	s := &outputs{t: t}
	broker := startBroker(t)
	kafka := broker.Kafka(0).Brokers[0]
	environ := []string{
		"SMARTFEED_REGISTRY_CLIENT_TOKEN=" + canary, "SMARTFEED_PINOT_CLIENT_USER=ada", "SMARTFEED_PINOT_CLIENT_PASSWORD=" + canary,
		"SMARTFEED_FEED_STORE_CASSANDRA_PRIMARY_LOGIN_USER=ada", "SMARTFEED_FEED_STORE_CASSANDRA_PRIMARY_LOGIN_PASSWORD=" + canary, "SMARTFEED_TOKEN=" + canary,
	}
	login := []string{"SMARTFEED_KAFKA_CLIENT_SASL_MECHANISM=SCRAM-SHA-256", "SMARTFEED_KAFKA_CLIENT_SASL_USER=ada", "SMARTFEED_KAFKA_CLIENT_SASL_PASSWORD=" + canary}
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
	}{
		{"registry", nil, []string{"process", "--kafka", kafka, "--registry", refusing.url, "--dir", t.TempDir(), "--http", testchild.FreeAddress(t)}},
		{"brokers without logins", login, []string{"topics", "verify", "--kafka", kafka, "--registry", broker.RegistryURL()}},
		{"pinot", nil, []string{"pinot", "apply", "--pinot.controller", strings.TrimPrefix(refusing.url, "http://"), "--kafka", kafka, "--partitions", "4"}},
		{"cassandra", nil, []string{"feed-store", "apply", "--feed_store.cassandra.primary.hosts", "127.0.0.1:1"}},
		{"http", nil, []string{"query", "get", "status", "--http", strings.TrimPrefix(refusing.url, "http://")}},
		{"doctor", login, []string{"doctor", "--kafka", kafka, "--registry", refusing.url, "--dir", t.TempDir(), "--http", strings.TrimPrefix(refusing.url, "http://")}},
	} {
		code, out, problems := execute(t, slices.Concat(environ, c.environ), c.args...)
		s.note(c.name, out+problems)
		expect.Equal(t, code, 1, "%s: exit code; printed %s%s", c.name, out, problems)
	}
	expect.True(t, refusing.sawCanary(), "a command has sent a secret")
}
