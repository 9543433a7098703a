package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/serving/client"
)

// healthy reports whether the doctor finds no problem with a running process.
func (s *started) healthy() bool {
	s.t.Helper()
	out, err := s.run("doctor", "-o", "json", "--timeout", "30s") // the process reports its directory
	var report struct {
		Problems int
		Checks   []struct{ Name, Level string }
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Problems != 0 {
		s.t.Fatalf("%v, %s", err, out)
	}
	seen := map[string]string{}
	for _, c := range report.Checks {
		seen[c.Name] = c.Level
	}
	if seen["directory"] == "warning" && strings.Contains(out, "is in memory (tmpfs)") {
		seen["directory"] = "ok" // tests may use memory
	}
	if !strings.Contains(out, s.cfg.Dir) {
		s.t.Logf("the doctor did not check the directory %s of the process, which may have responded late: %s", s.cfg.Dir, out)
		return false
	}
	for _, name := range []string{"directory", "process", "kafka", "topics", "transactions", "registry"} {
		if seen[name] != "ok" {
			s.t.Fatalf("%s is %q, want ok: %s", name, seen[name], out)
		}
	}
	return seen["groups"] == "ok"
}

func TestDoctor_ReportsUnavailableServers(t *testing.T) {
	t.Parallel()
	away := []string{"--kafka", "127.0.0.1:1", "--registry", "127.0.0.1:1", "--http", "127.0.0.1:1"}
	t.Run("running process", func(t *testing.T) {
		s := start(t, testConfig(t.TempDir()))
		eventually.True(t, "the doctor finds no problem", s.healthy) // members may still be joining their groups
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
		for _, want := range []string{"problem  feed store", "problem  standby", "warning  pinot", "note     drift"} {
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
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := local.Get(url); err == nil {
		_ = answer.Body.Close() // it was not read
		t.Errorf("a redirect to another server was followed with the credentials %q", <-received)
	}
}
