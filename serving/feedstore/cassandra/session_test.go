package cassandra

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

var errDown = errors.New("no node answers")

// cluster simulates a cluster whose nodes change addresses. A session knows only the addresses at the time of its creation.
type cluster struct {
	address atomic.Int64 // 0: there are no nodes
	opened  atomic.Int64
	failed  atomic.Int64  // attempts to open a session
	closing atomic.Int64  // sessions whose close was called
	hang    chan struct{} // close hangs until it is closed; nil: close does not hang
	mu      sync.Mutex
	knows   map[*gocql.Session]int64
}

func (c *cluster) close(session *gocql.Session) {
	c.closing.Add(1)
	if c.hang != nil {
		<-c.hang
	}
	session.Close()
}

func (c *cluster) open() (*gocql.Session, error) {
	at := c.address.Load()
	if at == 0 {
		c.failed.Add(1)
		return nil, errDown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened.Add(1)
	session := new(gocql.Session)
	c.knows[session] = at
	return session, nil
}

func (c *cluster) ping(_ context.Context, session *gocql.Session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.address.Load(); at == 0 || at != c.knows[session] {
		return errDown
	}
	return nil
}

// watch runs a store on a cluster in a synctest bubble.
func watch(t *testing.T, check func(s *Store, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		at := DefaultCluster()
		at.Hosts = []string{"127.0.0.1:1"}
		s := must.Get(New("standby", DefaultConfig(), at, 100, slog.New(slog.DiscardHandler)))(t)
		c := &cluster{knows: map[*gocql.Session]int64{}}
		c.address.Store(1)
		s.driver = driver{open: c.open, ping: c.ping, close: c.close}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = s.Run(ctx) })
		synctest.Wait()
		check(s, c)
		cancel()
		running.Wait()
		expect.False(t, s.Connected() || s.Answers(), "has a session, or answers, after Run has returned")
		if c.hang != nil {
			close(c.hang)
		}
	})
}

// after advances the time and lets the store run meanwhile.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A session whose nodes all have new addresses cannot reach any of them. It is replaced once.
func TestSession_ReplacedWhenDead(t *testing.T) {
	watch(t, func(s *Store, c *cluster) {
		first, err := s.conn()
		if err != nil || c.opened.Load() != 1 || !s.Answers() {
			t.Fatalf("at the start: %v, %d sessions, answers %v; want one that does", err, c.opened.Load(), s.Answers())
		}
		after(time.Hour)
		c.address.Store(2)
		after(deadAfter - retryEvery)
		if now, _ := s.conn(); now != first || first.Closed() || s.Answers() {
			t.Error("the session was replaced too early, or its nodes answer")
		}
		after(3 * retryEvery)
		second, err := s.conn()
		if err != nil || second == first || second.Closed() {
			t.Fatalf("requests do not use a new session: %v", err)
		}
		expect.True(t, first.Closed() && s.Answers(), "the dead session is closed: %v, the new one answers: %v", first.Closed(), s.Answers())
		after(time.Hour)
		if now, _ := s.conn(); now != second || c.opened.Load() != 2 {
			t.Errorf("%d sessions were opened, want 2", c.opened.Load())
		}
	})
}

// A dead session that does not close delays neither the next session nor the shutdown.
func TestSession_HangingCloseBlocksNothing(t *testing.T) {
	watch(t, func(s *Store, c *cluster) {
		first := must.Get(s.conn())(t)
		c.hang = make(chan struct{})
		c.address.Store(2)
		after(deadAfter + 3*retryEvery)
		if second, err := s.conn(); err != nil || second == first || !s.Answers() {
			t.Errorf("requests do not use a new session: %v", err)
		}
		expect.Equal(t, c.closing.Load(), 1, "sessions that hang while they are closed")
		expect.False(t, first.Closed(), "the first session is closed")
	})
}

// While no new session can be created, the current one stays, because its nodes may recover. A recovery is detected.
func TestSession_KeptWhileNoNewOneOpens(t *testing.T) {
	watch(t, func(s *Store, c *cluster) {
		reg := prometheus.NewRegistry()
		must.OK(t, reg.Register(s.Metric()))
		told := func() float64 { return metricstest.Sum(t, reg, "smartfeed_feedstore_up") }
		first, _ := s.conn()
		expect.Equal(t, told(), 1, "Answers")
		c.address.Store(0)
		after(time.Minute)
		if now, err := s.conn(); now != first || err != nil || first.Closed() || !s.Connected() {
			t.Errorf("the session was dropped: %v", err)
		}
		expect.Equal(t, told(), 0, "Answers after the failure")
		expect.AtLeast(t, c.failed.Load(), 30, "attempts to open another session in a minute, one per second after %s", deadAfter)
		c.address.Store(1)
		after(2 * retryEvery)
		if now, _ := s.conn(); now != first || told() != 1 || c.opened.Load() != 1 {
			t.Errorf("the recovered session is not used: %d opened, Answers %v", c.opened.Load(), told())
		}
	})
}

// A session that fails sometimes is alive.
func TestSession_KeptAfterRecovery(t *testing.T) {
	watch(t, func(s *Store, c *cluster) {
		for range 5 {
			c.address.Store(0)
			after(deadAfter - 2*retryEvery)
			c.address.Store(1)
			after(2 * retryEvery)
		}
		expect.Equal(t, c.opened.Load(), 1, "opened sessions")
		expect.Equal(t, c.failed.Load(), 0, "failed attempts")
	})
}

// A new connection uses the replaced password.
func TestAuthenticator_ReadsReplacedPassword(t *testing.T) {
	t.Parallel()
	at := DefaultCluster()
	at.Hosts = []string{"127.0.0.1"}
	at.Login = secure.Login{User: "feed", PasswordFile: filepath.Join(t.TempDir(), "password")}
	expect.Is(t, expect.ErrorOf(clusterConfig(DefaultConfig(), at)), fs.ErrNotExist, "settings without the password file")
	write := func(password string) {
		t.Helper()
		must.OK(t, os.WriteFile(at.Login.PasswordFile, []byte(password+"\n"), 0o600))
	}
	write("former")
	c := must.Get(clusterConfig(DefaultConfig(), at))(t)
	for _, password := range []string{"former", "replaced"} {
		write(password)
		a := must.Get(c.AuthProvider(nil))(t)
		got, _, err := a.Challenge([]byte("org.apache.cassandra.auth.PasswordAuthenticator"))
		must.OK(t, err)
		expect.Equal(t, string(got), "\x00feed\x00"+password, "answer of a new connection")
	}
}

// The driver has other defaults for each of these settings.
func TestClusterConfig_Settings(t *testing.T) {
	cfg, at := DefaultConfig(), DefaultCluster()
	cfg.Timeout, at.Hosts = 123*time.Millisecond, []string{"127.0.0.1:1"}
	c := must.Get(clusterConfig(cfg, at))(t)
	expect.Equal(t, c.Timeout, cfg.Timeout, "timeout")
	expect.Equal(t, c.ConnectTimeout, cfg.Timeout, "timeout of a connection")
	expect.Equal(t, c.Consistency, gocql.LocalQuorum, "consistency: a quorum of the data center")
	expect.False(t, c.DefaultTimestamp, "the driver sets timestamps: a repeat would be newer than the original write")
	expect.Equal(t, c.Keyspace, cfg.Keyspace, "keyspace: without it, queries are not routed to the replicas")
}
