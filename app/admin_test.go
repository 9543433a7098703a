package app

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/serving/auth"
)

// Pages of other sites can neither read what needs no token nor request it, because a profile takes CPU time. The admin
// address accepts only its own host names, even with api.insecure.
func TestPagesDoNotReachTheAdminAddress(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.Admin, cfg.API.Insecure, cfg.Advertise, cfg.API.AllowedHosts = "127.0.0.1:0", insecure, "process-1:80", []string{"metrics.example"}
		a, err := listenAdmin(cfg, nil, prometheus.NewRegistry())
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
			host, site string
			want       int
		}{
			{"127.0.0.1:6060", "", 200},
			{"localhost:6060", "none", 200},
			{"evil.example:6060", "", 403},
			{"evil.example:6060", "same-origin", 403},
			{"process-1:6060", "", 200},
			{"Metrics.example", "", 200},
			{"process-2:6060", "", 403},
			{"127.0.0.1:6060", "cross-site", 403},
			{"localhost:6060", "same-site", 403},
		} {
			want := c.want
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

// The test reaches the port of an unspecified address over loopback. What matters is the configured address.
func TestAdmin_BeyondLoopbackServesMetricsForTheScrapeTokenAlone(t *testing.T) {
	token := strings.Repeat("s", 32)
	cfg := DefaultConfig()
	cfg.Admin, cfg.Metrics.TokenFile = "0.0.0.0:0", filepath.Join(t.TempDir(), "scrape.token")
	if err := os.WriteFile(cfg.Metrics.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := listenAdmin(cfg, auth.ScrapeToken{File: cfg.Metrics.TokenFile}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.listener.Close() })
	for _, c := range []struct {
		path, authorization string
		want                int
	}{
		{"/metrics", "Bearer " + token, 200},
		{"/metrics", "Bearer " + strings.Repeat("t", 32), 401},
		{"/metrics", "", 401},
		{"/debug/pprof/", "Bearer " + token, 404},
		{"/debug/pprof/heap", "Bearer " + token, 404},
	} {
		r := httptest.NewRequest("GET", "http://process-1:6060"+c.path, nil)
		r.Header.Set("Authorization", c.authorization)
		w := httptest.NewRecorder()
		a.handler().ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s with %.10q: got %d, want %d", c.path, c.authorization, w.Code, c.want)
		}
	}
}

// askAdmin sends a request as a page of a site would, with a host name.
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
