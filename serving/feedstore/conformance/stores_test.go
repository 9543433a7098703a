package conformance

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

func TestEmbedded(t *testing.T) {
	run(t, func(t *testing.T, maxFeed int) store {
		cfg := feedstore.DefaultConfig()
		cfg.MaxItems = maxFeed
		s := must.Get(feedstore.Open(t.TempDir(), cfg, slog.New(slog.DiscardHandler)))(t)
		t.Cleanup(func() {
			expect.Error(t, s.Close(), "", "close")
		})
		return s
	})
}

// TestRealCassandra runs the suite on the cluster whose address is in SMARTFEED_TEST_CASSANDRA, before the first comma. It
// leaves a keyspace behind.
func TestRealCassandra(t *testing.T) {
	address, _, _ := strings.Cut(os.Getenv("SMARTFEED_TEST_CASSANDRA"), ",")
	if address == "" {
		t.Skip("set SMARTFEED_TEST_CASSANDRA to the address of a Cassandra node")
	}
	cluster, cfg := cassandra.DefaultCluster(), cassandra.DefaultConfig()
	cluster.Hosts, cluster.Replicas = []string{address}, 1
	cfg.Keyspace, cfg.Timeout = "smartfeed_test", 10*time.Second
	run(t, func(t *testing.T, maxFeed int) store { return cassandratest.Start(t, cfg, cluster, maxFeed) })
}
