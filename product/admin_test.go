package product

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What nobody is asked for a token for is read by no page of another site, nor made by one: a profile takes the time of
// processors. Where something else guards the address, it knows by what names it is asked for.
func TestPagesDoNotReachTheAdminAddress(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.Admin, cfg.API.Insecure = "127.0.0.1:0", insecure
		a, err := listenAdmin(cfg, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.listener.Close() })
		port := a.listener.Addr().(*net.TCPAddr).Port
		ended := make(chan error, 1)
		go func() { ended <- a.Run(t.Context()) }()
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		for _, c := range []struct {
			host, site    string
			code, guarded int // with api.insecure
		}{
			{"127.0.0.1:6060", "", 200, 200},
			{"localhost:6060", "none", 200, 200},
			{"evil.example:6060", "", 403, 200},
			{"evil.example:6060", "same-origin", 403, 200},
			{"process-1:6060", "", 403, 200},
			{"127.0.0.1:6060", "cross-site", 403, 403},
			{"localhost:6060", "same-site", 403, 403},
		} {
			want := c.code
			if insecure {
				want = c.guarded
			}
			for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
				if strings.Contains(path, "profile") && want == http.StatusOK {
					continue // it takes a second
				}
				if got := askAdmin(t, port, path, c.host, c.site); got != want {
					t.Errorf("insecure %t, %s of %s from %q: got %d, want %d", insecure, path, c.host, c.site, got, want)
				}
			}
		}
	}
}

// askAdmin asks as a page of a site would, by a name.
func askAdmin(t *testing.T, port int, path, host, site string) int {
	t.Helper()
	to := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+to.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}
