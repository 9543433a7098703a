package cassandra

import (
	"context"
	"fmt"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// settings are those of every session that reads and writes rows. It fails when a file of certificates or of a secret
// cannot be read.
func settings(cfg Config, at Cluster) (*gocql.ClusterConfig, error) {
	c := gocql.NewCluster(at.Hosts...)
	c.Keyspace = cfg.Keyspace
	c.Timeout = cfg.Timeout        // 11 s by default
	c.ConnectTimeout = cfg.Timeout // a node that hangs must not hold up the making of a session for longer
	c.Consistency = gocql.LocalQuorum
	c.DefaultTimestamp = false // every statement has a time of its own
	c.DefaultIdempotence = true
	c.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 1} // on the next node; with one node there is none
	c.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy(at.Datacenter), gocql.ShuffleReplicas())
	c.ReconnectInterval = time.Second // a node that was away is used again soon
	c.WriteCoalesceWaitTime = 0       // latency first
	c.NextPagePrefetch = 0            // no read here is longer than a page of the protocol
	if err := secured(c, at); err != nil {
		return nil, err
	}
	return c, nil
}

// secured says how connections are encrypted, and who asks.
func secured(c *gocql.ClusterConfig, at Cluster) error {
	encryption, err := at.TLS.Config()
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if encryption != nil {
		c.SslOpts = &gocql.SslOptions{Config: encryption}
	}
	if !at.Login.Given() {
		return nil
	}
	c.AuthProvider = func(*gocql.HostInfo) (gocql.Authenticator, error) { return authenticator(at) }
	_, err = authenticator(at)
	return err
}

// authenticator says who asks on a new connection, with the password as it is now: its file may have been replaced.
func authenticator(at Cluster) (gocql.Authenticator, error) {
	password, err := at.Login.Secret()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return gocql.PasswordAuthenticator{Username: at.Login.User, Password: password}, nil
}

const (
	retryEvery = time.Second      // another attempt to make a session, or a look at the one there is
	deadAfter  = 20 * time.Second // a session that has failed for so long is made anew: the nodes may have other addresses
)

// driver makes sessions, and asks them: gocql, or a test's.
type driver struct {
	open  func() (*gocql.Session, error)
	ask   func(ctx context.Context, session *gocql.Session) error // nil: a node answers
	close func(session *gocql.Session)
}

// Run makes the session, as often as it takes, watches it, and makes it anew when it seems dead; until ctx ends (nil).
// It may be called again after it returned.
func (s *Store) Run(ctx context.Context) error {
	defer s.end()
	defer s.answers.Store(false)
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	well := time.Now()
	for {
		// The look is taken first: what failed for long, and answers now, is alive, and may be in the middle of a read.
		answers := s.alive(ctx) || (s.session.Load() == nil || time.Since(well) > deadAfter) && s.connect()
		if s.answers.Store(answers); answers {
			well = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// connect makes a session; the one there is stays if that fails.
func (s *Store) connect() bool {
	session, err := s.driver.open()
	if err != nil {
		s.refused(err)
		return false
	}
	s.log.Info("connected to the feed store", "hosts", s.cluster.Hosts)
	s.swap(session)
	return true
}

// open makes a session of settings, if there are some.
func open(c *gocql.ClusterConfig, err error) (*gocql.Session, error) {
	if err != nil {
		return nil, err
	}
	return c.CreateSession()
}

// refused keeps the reason, and logs it when it is another one.
func (s *Store) refused(err error) {
	old := s.why.Swap(&err)
	if old == nil || (*old).Error() != err.Error() {
		s.log.Warn("feed store cannot be reached", "hosts", s.cluster.Hosts, "error", err)
	}
}

// swap puts a session in the place of the one there is, and has that closed, which nobody waits for: a session that seems dead
// may never have ended (gocql's control connection is told to quit by a channel that it may have stopped to read). The
// channel is closed when it has.
func (s *Store) swap(session *gocql.Session) <-chan struct{} {
	closed := make(chan struct{})
	old := s.session.Swap(session)
	go func() {
		defer close(closed)
		if old != nil {
			s.driver.close(old)
		}
	}()
	return closed
}

// end lets the session go, and waits a moment for it.
func (s *Store) end() {
	select {
	case <-s.swap(nil):
	case <-time.After(s.cfg.Timeout):
		s.log.Warn("a session with the feed store does not end", "hosts", s.cluster.Hosts)
	}
}

// alive tells whether there is a session and any node answers.
func (s *Store) alive(ctx context.Context) bool {
	session := s.session.Load()
	if session == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return s.driver.ask(ctx, session) == nil
}

// ask asks any node for what each has.
func ask(ctx context.Context, session *gocql.Session) error {
	var key string
	return session.Query("SELECT key FROM system.local").ScanContext(ctx, &key)
}
