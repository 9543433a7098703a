package cassandratest

import (
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// timeout is how long a test waits for a node: a new node does not know any role for a moment, and the machine may be busy.
const timeout = 2 * time.Minute

// Do runs statements on a cluster, with the login of the cluster.
func Do(t *testing.T, at cassandra.Cluster, statements ...string) {
	t.Helper()
	encryption := must.Get(at.TLS.Config())(t)
	password := must.Get(at.Login.Secret())(t)
	c := gocql.NewCluster(at.Hosts...)
	c.Authenticator = gocql.PasswordAuthenticator{Username: at.Login.User, Password: password}
	c.Timeout = timeout
	if encryption != nil {
		c.SslOpts = &gocql.SslOptions{Config: encryption}
	}
	session, err := c.CreateSession()
	for deadline := time.Now().Add(timeout); err != nil; session, err = c.CreateSession() {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	defer session.Close()
	for _, statement := range statements {
		must.OK(t, session.Query(statement).ExecContext(t.Context()))
	}
}
