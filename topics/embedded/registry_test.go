package embedded_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
)

// A page of another site has a browser send what it likes; the registry keeps for ever what is registered, so it takes
// nothing from there. Nor is it read by a name that a site has had lead here.
func TestOtherSitesRegisterNothing(t *testing.T) {
	s := start(t, config(t.TempDir()))
	ask := func(method, path, host string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.RegistryURL()+path, strings.NewReader(`{"schema":"\"string\""}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
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
		{"a page whose site leads here", "POST", versions, "evil.example:8081", []string{"Sec-Fetch-Site", "same-origin"}},
		{"a page whose site leads here, reading", "GET", "/subjects", "evil.example:8081", nil},
	} {
		if code, body := ask(c.method, c.path, c.host, c.header...); code != 403 {
			t.Errorf("%s: got %d %s, want 403", c.name, code, body)
		}
	}
	if code, body := ask("GET", "/subjects", "127.0.0.1:8081"); code != 200 || strings.TrimSpace(body) != "[]" {
		t.Errorf("the subjects afterwards: got %d %s, want none", code, body)
	}
	if id := register(t, s.RegistryURL(), "a", `"string"`); id != 1 {
		t.Errorf("the first schema has the id %d, want 1", id)
	}
	if code, _ := ask("GET", schema, "localhost:8081"); code != 200 {
		t.Errorf("a schema, asked for by localhost: got %d, want 200", code)
	}
	cl, err := sr.NewClient(sr.URLs(s.RegistryURL()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.SchemaByID(t.Context(), 1); err != nil {
		t.Errorf("a client: got %v, want the schema", err)
	}
}
