package cassandra_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// The variables with the address of a node that requires a login and TLS, as .ci/services starts cassandra-secured, and with
// the directory of its certificates.
const (
	realSecured      = "SMARTFEED_TEST_CASSANDRA_SECURED"
	realCertificates = "SMARTFEED_TEST_CERTIFICATES"
)

// securedAt returns the cluster and a function that returns the path of a certificate.
func securedAt(t *testing.T) (cassandra.Cluster, func(name string) string) {
	t.Helper()
	at := os.Getenv(realSecured)
	if at == "" {
		t.Skipf("set %s to the address of a Cassandra node that requires a login", realSecured)
	}
	file := func(name string) string { return filepath.Join(os.Getenv(realCertificates), name) }
	c := cassandra.DefaultCluster()
	c.Hosts, c.Replicas = []string{at}, 1
	c.TLS = secure.TLS{Enabled: true, Certificates: secure.Certificates{CAFile: file(securetest.CA)}}
	c.Login = secure.Login{User: "cassandra", Password: "cassandra"} // the default login of a new cluster
	return c, file
}

func TestRealSecuredCassandra(t *testing.T) {
	cluster, file := securedAt(t)
	eventually.OK(t, func() error { // a new cluster does not know any role for a moment
		return expect.ErrorOf(cassandra.Apply(t.Context(), config(), cluster))
	})
	s := cassandratest.Start(t, config(), cluster, 100)
	user := schemas.UserID(fmt.Sprintf("user:%d", time.Now().UnixNano()))
	e := schemas.FeedEntry{User: user, Position: 1, Time: 1, ServedItem: schemas.ServedItem{Pin: "pin:1"}}
	must.OK(t, s.Write(t.Context(), feedstore.Batch{Entries: []schemas.FeedEntry{e}}))
	if got, _, err := s.Page(t.Context(), user, math.MaxInt64, 10); len(got) != 1 || err != nil {
		t.Errorf("Page: got %v, %v, want the written entries", got, err)
	}
	for name, c := range map[string]struct {
		change func(*cassandra.Cluster)
		says   string
	}{
		"wrong password":    {func(c *cassandra.Cluster) { c.Login.Password = "battery-staple" }, "username cassandra and/or password are incorrect"},
		"no login":          {func(c *cassandra.Cluster) { c.Login = secure.Login{} }, "authentication required"},
		"another authority": {func(c *cassandra.Cluster) { c.TLS.CAFile = file(securetest.Other) }, "unknown authority"},
		"no such file":      {func(c *cassandra.Cluster) { c.TLS.CAFile = file("none") }, "no such file"},
	} {
		other := cluster
		c.change(&other)
		if err := cassandra.Verify(t.Context(), config(), other); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "battery-staple") {
			t.Errorf("%s: got %v, want an error that says %q", name, err, c.says)
		}
	}
}
