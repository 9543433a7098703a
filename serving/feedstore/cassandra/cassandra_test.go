package cassandra_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

const (
	// realCassandra names the variable with the addresses of the primary and, after a comma, of the standby. Tests may use
	// these clusters; they leave a keyspace behind.
	realCassandra = "SMARTFEED_TEST_CASSANDRA"
	// realServices names the variable with the service names, in the same order, for .ci/services to kill and start them.
	realServices = "SERVICES_UP"
)

// timeout is how long a test waits for an expected event. It is long because the machine may be busy.
const timeout = 2 * time.Minute

// at returns one of the clusters in the variable realCassandra.
func at(t testing.TB, i int) cassandra.Cluster {
	t.Helper()
	addrs := strings.Split(os.Getenv(realCassandra), ",")
	if len(addrs) <= i || addrs[i] == "" {
		t.Skipf("set %s to the addresses of two Cassandra nodes", realCassandra)
	}
	c := cassandra.DefaultCluster()
	c.Hosts, c.Replicas = []string{addrs[i]}, 1
	return c
}

func config() cassandra.Config {
	cfg := cassandra.DefaultConfig()
	cfg.Keyspace, cfg.Timeout = "smartfeed_test", 10*time.Second
	return cfg
}

// start returns a store on an applied schema and runs it until the test ends.
func start(t testing.TB, cfg cassandra.Config, cluster cassandra.Cluster, maxFeed int) *cassandra.Store {
	t.Helper()
	must.Get(cassandra.Apply(t.Context(), cfg, cluster))(t)
	s := must.Get(cassandra.New("test", cfg, cluster, maxFeed, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	run(t, s)
	return s
}

func run(t testing.TB, s *cassandra.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		expect.Error(t, s.Run(ctx), "", "Run")
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually.True(t, "the store has a session", s.Connected)
}

// service runs a command of .ci/services for a server.
func service(t testing.TB, command string, i int) {
	t.Helper()
	names := strings.Fields(os.Getenv(realServices))
	if len(names) <= i {
		t.Skipf("set %s to the names of the servers in .ci/services", realServices)
	}
	cmd := exec.CommandContext(t.Context(), "../../../.ci/services", command, names[i])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("services %s %s: %v\n%s", command, names[i], err, out)
	}
}
