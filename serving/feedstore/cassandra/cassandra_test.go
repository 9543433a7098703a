package cassandra_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

const (
	// realCassandra names the variable with the addresses of the primary and, after a comma, of the standby. Tests may use
	// these clusters; they leave a keyspace behind.
	realCassandra = "SMARTFEED_TEST_CASSANDRA"
	// realServices names the variable with the service names, in the same order, for .ci/services to kill and start them.
	realServices = "SERVICES_UP"
)

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
