package app

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
)

// logBuffer is a log that tests can read.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *logBuffer) contains(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), what)
}

// A serving process starts without its external stores, reports which are missing, and serves degraded feeds and features
// with the reasons.
func TestServe_StartsWithoutStores(t *testing.T) {
	broker := startBroker(t)
	cfg := roleConfig(t, broker)
	unreachable := []string{"127.0.0.1:1"}
	cfg.FeedStore.Cassandra.Primary.Hosts = unreachable
	cfg.Pinot.Brokers, cfg.Pinot.Controller = unreachable, unreachable[0]
	log := new(logBuffer)
	s := launch(t, cfg, slog.New(slog.NewTextHandler(log, nil)), serving())
	for _, c := range []struct{ path, body, want string }{
		{"/readyz", "", "no feed store is reachable"},
		{"/v1/users/user:ada/feed", "", `"degraded":["generator","store"]`},
		{"/v1/features", `{"features":["interests_24h"],"users":["user:ada"]}`, `"missing":[{"entity":"user:ada","feature":"interests_24h"`},
	} {
		eventually.True(t, c.path+" answers "+c.want, func() bool {
			_, body := s.api().send(c.path, c.body)
			return strings.Contains(body, c.want)
		})
	}
	eventually.True(t, "the log reports the unavailable feed store", func() bool { return log.contains("feed store cannot be reached") })
}
