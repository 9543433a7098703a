package foreign

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestName_AcceptsAddressesAndAllowedNames(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:80": false, "127.0.0.1": false, "[::1]:80": false, "[::1]": false, "::1": false, "192.0.2.1:80": false,
		"localhost": false, "LocalHost:80": false, "": false,
		"evil.example": true, "evil.example:80": true, "127.0.0.1.evil.example": true, "localhost.evil.example:80": true,
		"localhost.": true, "[fe80::1%evil.example]:80": true, "server": true, "127.0.0.1:x:y": true, "127.0.0.1:80I0": true, "127.0.0.1:": false, "0x7f.1": true, "127.1": true, "2130706433": true,
	} {
		expect.Equal(t, Name(host), want, "%q", host)
	}
}

func TestRefuse_RejectsCrossSiteRequests(t *testing.T) {
	for _, c := range []struct {
		method, host, header, value string
		change, page                int // status codes
	}{
		{"GET", "127.0.0.1:8081", "", "", 200, 200},
		{"POST", "127.0.0.1:8081", "", "", 200, 200},
		{"POST", "localhost:8081", "Sec-Fetch-Site", "same-origin", 200, 200},
		{"GET", "localhost:8081", "Sec-Fetch-Site", "none", 200, 200},
		{"POST", "127.0.0.1:8081", "Sec-Fetch-Site", "cross-site", 403, 403},
		{"POST", "127.0.0.1:8081", "Sec-Fetch-Site", "same-site", 403, 403},
		{"POST", "127.0.0.1:8081", "Origin", "https://evil.example", 403, 403},
		{"DELETE", "127.0.0.1:8081", "Origin", "null", 403, 403},
		{"GET", "127.0.0.1:8081", "Sec-Fetch-Site", "cross-site", 200, 403},
		{"GET", "evil.example:8081", "", "", 403, 403},
		{"POST", "evil.example:8081", "Sec-Fetch-Site", "same-origin", 403, 403},
	} {
		for name, counts := range map[string]func(*http.Request) bool{"change": Change, "page": Page} {
			want := map[string]int{"change": c.change, "page": c.page}[name]
			reached := false
			asked := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached = r.Method == c.method })
			r := httptest.NewRequest(c.method, "/", nil)
			r.Host = c.host
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			w := httptest.NewRecorder()
			RefuseNames(RefusePages(asked, counts)).ServeHTTP(w, r)
			expect.Equal(t, w.Code, want, "status of %+v, %s", c, name)
			expect.Equal(t, reached, want == 200, "the handler is called by %+v, %s", c, name)
		}
	}
}
