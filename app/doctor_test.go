package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/client"
)

// checkHealthy checks that the doctor finds no problem with a running process.
func (s *started) checkHealthy() {
	s.t.Helper()
	report := runJSON[struct {
		Problems int
		Checks   []struct{ Name, Level string }
	}](s, "doctor", "--timeout", "30s")
	expect.Equal(s.t, report.Problems, 0, "problems in %+v", report)
	seen := map[string]string{}
	for _, c := range report.Checks {
		seen[c.Name] = c.Level
	}
	for _, name := range []string{"process", "kafka", "topics", "transactions", "registry"} {
		expect.Equal(s.t, seen[name], "ok", "%s in %+v", name, report)
	}
}

func TestDoctor_ReportsUnavailableServers(t *testing.T) {
	t.Parallel()
	away := []string{"--kafka", "127.0.0.1:1", "--registry", "127.0.0.1:1", "--http", "127.0.0.1:1"}
	t.Run("running process", func(t *testing.T) {
		s := start(t, testConfig(t.TempDir()))
		s.checkHealthy()
		dir := s.cfg.Dir
		s.stop()
		out, err := runCommand(t.Context(), append(away, "doctor", "--dir", dir)...)
		if err != nil || !strings.Contains(out, "note     kafka         no broker listens on 127.0.0.1:1") || !strings.Contains(out, "0 problems") {
			t.Errorf("stopped: %v, %s", err, out)
		}
	})
	t.Run("unavailable brokers", func(t *testing.T) {
		out, err := runCommand(t.Context(), append(away, "doctor", "--dir", t.TempDir())...)
		if err == nil || !strings.HasPrefix(err.Error(), "exit code 1: smartfeed: ") || !strings.Contains(out, "problem  kafka         127.0.0.1:1 is unreachable") {
			t.Errorf("%v, %s", err, out)
		}
	})
	t.Run("unavailable stores", func(t *testing.T) {
		out, err := runCommand(t.Context(), append(away, "doctor", "--dir", t.TempDir(), "--timeout", "5s",
			"--feed_store.cassandra.primary.hosts", "127.0.0.1:1", "--feed_store.cassandra.standby.hosts", "127.0.0.1:1",
			"--pinot.brokers", "127.0.0.1:1", "--pinot.controller", "127.0.0.1:1")...)
		for _, want := range []string{"problem  feed store", "problem  standby", "warning  pinot"} {
			if err == nil || !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", err, want, out)
			}
		}
	})
}

func TestLocalClient_SendsTokenToNoOtherServer(t *testing.T) {
	t.Parallel()
	received := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(redirecting.Close)
	local, url, err := new(Config).localClient(client.Config{Address: redirecting.Listener.Addr().String(), Token: "token"})
	must.OK(t, err)
	if answer, err := local.Get(url); err == nil {
		_ = answer.Body.Close() // it was not read
		t.Errorf("a redirect to another server was followed with the credentials %q", <-received)
	}
}
