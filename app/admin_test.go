package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// The admin server rejects cross-site requests, because a profile takes CPU time, and unknown host names, even with
// api.insecure.
func TestAdmin_RejectsCrossSiteRequestsAndForeignNames(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.Admin, cfg.API.Insecure, cfg.Advertise, cfg.API.AllowedHosts = "127.0.0.1:0", insecure, "process-1:80", []string{"metrics.example"}
		admin := adminOf(t, cfg, nil)
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
			for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
				if strings.Contains(path, "profile?") && c.want == http.StatusOK {
					continue // a profile takes a second
				}
				got := admin("http://"+c.host+path, "Sec-Fetch-Site", c.site)
				expect.Equal(t, got, c.want, "insecure %t, %s of %s from %q", insecure, path, c.host, c.site)
			}
		}
	}
}

func TestAdmin_ServesOnlyMetricsWithTokenBeyondLoopback(t *testing.T) {
	token := strings.Repeat("s", 32)
	cfg := DefaultConfig()
	cfg.Admin, cfg.Metrics.TokenFile = "0.0.0.0:0", filepath.Join(t.TempDir(), "scrape.token")
	must.OK(t, os.WriteFile(cfg.Metrics.TokenFile, []byte(token+"\n"), 0o600))
	admin := adminOf(t, cfg, auth.ScrapeToken{File: cfg.Metrics.TokenFile}.Check)
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
		got := admin("http://process-1:6060"+c.path, "Authorization", c.authorization)
		expect.Equal(t, got, c.want, "%s with %.10q", c.path, c.authorization)
	}
}

// adminOf returns a function that sends a request with a header to an admin server, and returns the status code.
func adminOf(t *testing.T, cfg Config, scrape api.ScrapeCheck) func(url, header, value string) int {
	t.Helper()
	a := must.Get(listenAdmin(cfg, scrape, prometheus.NewRegistry()))(t)
	t.Cleanup(func() { _ = a.listener.Close() })
	return func(url, header, value string) int {
		r, w := httptest.NewRequest("GET", url, nil), httptest.NewRecorder()
		if value != "" {
			r.Header.Set(header, value)
		}
		a.handler().ServeHTTP(w, r)
		return w.Code
	}
}
