package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// FuzzRequest has the whole handler answer: whatever a request line, a header and a body hold, the answer is one of the
// codes that the document names, and never that something broke.
func FuzzRequest(f *testing.F) {
	s, err := Listen("127.0.0.1:0", DefaultConfig(), (&fakes{}).deps())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	handler := s.handler()
	for _, a := range plainAskings {
		if len(a.body) < 1000 && !strings.Contains(a.path, "/feed/events") {
			f.Add(a.method, a.path, strings.Join(a.header, "\n"), a.body)
		}
	}
	fine := []int{200, 202, 304, 400, 403, 404, 405, 409, 413, 415}
	f.Fuzz(func(t *testing.T, method, path, header, body string) {
		if strings.Contains(path, "/feed/events") || !strings.HasPrefix(path, "/") {
			t.Skip() // a stream has no end; a line that is none does not come through net/http
		}
		r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		lines := strings.Split(header, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			r.Header.Set(lines[i], lines[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		// The mux sends paths that are not clean to clean ones.
		if !slices.Contains(fine, w.Code) && (w.Code < 300 || w.Code >= 309) {
			t.Errorf("%s %q with %q and %q: got %d %s", method, path, header, body, w.Code, w.Body)
		}
	})
}
