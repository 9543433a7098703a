package cassandratest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// timeout is how long a test waits for a node: a new node does not know any role for a moment, and the machine may be busy.
const timeout = 2 * time.Minute

// Start applies the schema of a store, and runs the store until the test ends.
func Start(t testing.TB, cfg cassandra.Config, at cassandra.Cluster, maxFeed int) *cassandra.Store {
	t.Helper()
	must.Get(cassandra.Apply(t.Context(), cfg, at))(t)
	s := must.Get(cassandra.New("test", cfg, at, maxFeed, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { expect.Error(t, s.Run(ctx), "", "Run") })
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually.True(t, "the store has a session", s.Connected)
	return s
}

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
	var session *gocql.Session
	eventually.OK(t, func() (err error) {
		session, err = c.CreateSession()
		return err
	})
	defer session.Close()
	for _, statement := range statements {
		must.OK(t, session.Query(statement).ExecContext(t.Context()))
	}
}
