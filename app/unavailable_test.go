package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/logtest"
)

// A serving process starts without its external stores, reports which are missing, and serves degraded feeds and features
// with the reasons.
func TestServe_StartsWithoutStores(t *testing.T) {
	broker := startBroker(t)
	cfg := roleConfig(t, broker)
	unreachable := []string{"127.0.0.1:1"}
	cfg.FeedStore.Cassandra.Primary.Hosts = unreachable
	cfg.Pinot.Brokers, cfg.Pinot.Controller = unreachable, unreachable[0]
	log := new(logtest.Log)
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
	eventually.True(t, "the log reports the unavailable feed store", func() bool { return log.Contains("feed store cannot be reached") })
}
