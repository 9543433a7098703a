package cassandra

import (
	"context"
	"fmt"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"github.com/smartfeed/smartfeed/internal/periodic"
)

// clusterConfig returns the configuration of every session that reads and writes rows. It returns an error if a certificate or secret
// file cannot be read.
func clusterConfig(cfg Config, at Cluster) (*gocql.ClusterConfig, error) {
	c := gocql.NewCluster(at.Hosts...)
	c.Keyspace = cfg.Keyspace
	c.Timeout = cfg.Timeout        // the default is 11 s
	c.ConnectTimeout = cfg.Timeout // a node that hangs must not delay the creation of a session for longer
	c.Consistency = gocql.LocalQuorum
	c.DefaultTimestamp = false // every statement sets its own write time
	c.DefaultIdempotence = true
	c.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 1} // on the next node; with one node there is none
	c.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy(at.Datacenter), gocql.ShuffleReplicas())
	c.ReconnectInterval = time.Second // a node that was down is used again soon
	c.WriteCoalesceWaitTime = 0       // latency first
	c.NextPagePrefetch = 0            // no read here is longer than a page of the protocol
	if err := secured(c, at); err != nil {
		return nil, err
	}
	return c, nil
}

// secured configures encryption and authentication of connections.
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

// authenticator returns the credentials for a new connection. It reads the current password, because the file may have been
// replaced.
func authenticator(at Cluster) (gocql.Authenticator, error) {
	password, err := at.Login.Secret()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return gocql.PasswordAuthenticator{Username: at.Login.User, Password: password}, nil
}

const (
	retryEvery = time.Second      // interval of attempts to create a session, and of checks of the session
	deadAfter  = 20 * time.Second // a session that fails for this long is replaced, because the nodes may have other addresses
)

// driver creates sessions and checks them: gocql, or a test's.
type driver struct {
	open  func() (*gocql.Session, error)
	ping  func(ctx context.Context, session *gocql.Session) error // nil: a node answers
	close func(session *gocql.Session)
}

// Run creates the session, retrying until it succeeds, checks it every second, and replaces it when it is dead. It
// returns nil when ctx ends. It may be called again after it has returned.
func (s *Store) Run(ctx context.Context) error {
	defer s.closeSession()
	defer s.answers.Store(false)
	healthy := time.Now()
	return periodic.Run(ctx, retryEvery, func() error {
		// Check first: a session that failed for long but answers now is alive, and may be in use by a read.
		answers := s.alive(ctx) || (s.session.Load() == nil || time.Since(healthy) > deadAfter) && s.connect()
		if s.answers.Store(answers); answers {
			healthy = time.Now()
		}
		return nil
	})
}

// connect creates a session. If that fails, the current session stays.
func (s *Store) connect() bool {
	session, err := s.driver.open()
	if err != nil {
		s.setReason(err)
		return false
	}
	s.log.Info("connected to the feed store", "hosts", s.cluster.Hosts)
	s.swap(session)
	return true
}

// open creates a session from settings, or returns their error.
func open(c *gocql.ClusterConfig, err error) (*gocql.Session, error) {
	if err != nil {
		return nil, err
	}
	return c.CreateSession()
}

// setReason stores the reason why there is no session, and logs it if it has changed.
func (s *Store) setReason(err error) {
	old := s.why.Swap(&err)
	if old == nil || (*old).Error() != err.Error() {
		s.log.Warn("feed store cannot be reached", "hosts", s.cluster.Hosts, "error", err)
	}
}

// swap replaces the session and closes the previous one in the background. No caller waits for the close, because it may hang
// for a dead session: gocql stops its control connection by a channel that it may no longer read. The returned channel is
// closed after the previous session.
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

// closeSession closes the session and waits for at most Config.Timeout.
func (s *Store) closeSession() {
	select {
	case <-s.swap(nil):
	case <-time.After(s.cfg.Timeout):
		s.log.Warn("closing the session with the feed store timed out", "hosts", s.cluster.Hosts)
	}
}

// alive reports whether there is a session and any node answers.
func (s *Store) alive(ctx context.Context) bool {
	session := s.session.Load()
	if session == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return s.driver.ping(ctx, session) == nil
}

// ping reads a row that every node has from any node.
func ping(ctx context.Context, session *gocql.Session) error {
	var key string
	return session.Query("SELECT key FROM system.local").ScanContext(ctx, &key)
}
