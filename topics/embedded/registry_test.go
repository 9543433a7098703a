package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// openRegistry serves only a registry until end, which may be called once. It calls step before each change of the file.
func openRegistry(t *testing.T, path string, step func() error) (url string, end func()) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	url, closed, err := embedded.OpenRegistry(path, l, func(string, []byte) error { return step() })
	if err != nil {
		_ = l.Close()
		t.Fatal(err)
	}
	return url, func() {
		expect.Error(t, closed(), "", "close the registry")
	}
}

func clientOf(t *testing.T, url string) *sr.Client {
	t.Helper()
	return must.Get(sr.NewClient(sr.URLs(url)))(t)
}

var errFull = errors.New("no space left on device")

// A failed registration leaves no trace: the schema cannot be looked up, and it has used no id. So after the next start,
// every schema has the id that it was given.
func TestRegistry_DiscardsFailedRegistrations(t *testing.T) {
	const lost = `"long"`
	own := sr.SchemaReference{Name: "a", Subject: "a", Version: 1}
	for _, c := range []struct {
		name    string
		full    bool // the disk is full during the request
		path    string
		subject string
		schema  sr.Schema
		status  int
	}{
		{"the file cannot be written", true, "", "b", sr.Schema{Schema: lost}, 500},
		{"the schema refers to its own subject", false, "", "a", sr.Schema{Schema: lost, References: []sr.SchemaReference{own}}, 422},
		{"the schema is for a context", false, "/contexts/.c", "b", sr.Schema{Schema: lost}, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.json")
			full, refused := false, 0
			url, end := openRegistry(t, path, func() error {
				if !full {
					return nil
				}
				refused++
				return errFull
			})
			register(t, url, "a", `"string"`)
			full = c.full
			_, err := clientOf(t, url+c.path).RegisterSchema(t.Context(), c.subject, c.schema, -1, -1)
			expect.Equal(t, must.As[*sr.ResponseError](t, err).StatusCode, c.status, "status of the registration")
			expect.Equal(t, c.full, refused == 1, "one write was refused, of %d failed", refused)
			full = false
			expect.Fails(t, expect.ErrorOf(clientOf(t, url).LookupSchema(t.Context(), c.subject, c.schema)), "schema of %s", c.subject)
			ids := map[string]int{`"string"`: 1, `"double"`: register(t, url, "c", `"double"`)}
			end()
			url, end = openRegistry(t, path, func() error { return nil })
			defer end()
			for schema, want := range ids {
				expect.Equal(t, register(t, url, "d", schema), want, "id of %s after a restart", schema)
			}
			expect.Equal(t, register(t, url, "b", lost), 3, "id of the schema when it is registered again")
		})
	}
}

// A schema is visible only when the file has it.
func TestRegistry_AnswersAfterSchemaIsStored(t *testing.T) {
	schema, lookups := sr.Schema{Schema: `"string"`}, 0
	var url string
	look := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // no answer will come
		defer cancel()
		_, err := clientOf(t, url).LookupSchema(ctx, "a", schema)
		return err
	}
	url, end := openRegistry(t, filepath.Join(t.TempDir(), "registry.json"), func() error {
		lookups++
		expect.Is(t, look(), context.DeadlineExceeded, "look-up while the schema is being stored")
		return nil
	})
	defer end()
	register(t, url, "a", schema.Schema)
	must.Get(clientOf(t, url).LookupSchema(t.Context(), "a", schema))(t)
	expect.Equal(t, lookups, 1, "look-ups before the schema is stored")
}

// A page of another site can make a browser send any request. The registry keeps every registration forever, so it rejects
// such requests. It also rejects reads under a host name that a site has pointed to this address.
func TestRegistry_RejectsCrossSiteRequests(t *testing.T) {
	s := start(t, config(t.TempDir()))
	ask := func(method, path, host string, header ...string) (int, string) {
		r := must.Get(http.NewRequestWithContext(t.Context(), method, s.RegistryURL()+path, strings.NewReader(`{"schema":"\"string\""}`)))(t)
		r.Host = host
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res := must.Get(http.DefaultClient.Do(r))(t)
		defer res.Body.Close()
		body := must.Get(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(body)
	}
	const versions, schema = "/subjects/pins-value/versions", "/schemas/ids/1"
	for _, c := range []struct {
		name, method, path, host string
		header                   []string
	}{
		{"a page", "POST", versions, "127.0.0.1:8081", []string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}},
		{"a page in an old browser", "POST", versions, "127.0.0.1:8081", []string{"Origin", "https://evil.example", "Content-Type", "text/plain"}},
		{"a page from another port", "POST", versions, "localhost:8081", []string{"Sec-Fetch-Site", "same-site"}},
		{"page of a rebound host name", "POST", versions, "evil.example:8081", []string{"Sec-Fetch-Site", "same-origin"}},
		{"read by a page of a rebound host name", "GET", "/subjects", "evil.example:8081", nil},
	} {
		if code, body := ask(c.method, c.path, c.host, c.header...); code != 403 {
			t.Errorf("%s: got %d %s, want 403", c.name, code, body)
		}
	}
	code, body := ask("GET", "/subjects", "127.0.0.1:8081")
	expect.Equal(t, code, 200, "status of the subjects afterwards")
	expect.Equal(t, strings.TrimSpace(body), "[]", "the subjects afterwards")
	expect.Equal(t, register(t, s.RegistryURL(), "a", `"string"`), 1, "the first schema has the id")
	code, _ = ask("GET", schema, "localhost:8081")
	expect.Equal(t, code, 200, "schema requested through localhost: status")
	must.Get(clientOf(t, s.RegistryURL()).SchemaByID(t.Context(), 1))(t)
}
