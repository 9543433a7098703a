package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

func TestRealCassandraSchema(t *testing.T) {
	cluster, cfg := at(t, 0), config()
	cfg.Keyspace = fmt.Sprintf("smartfeed_%d", time.Now().UnixNano())
	if err := cassandra.Verify(t.Context(), cfg, cluster); err == nil || strings.Count(err.Error(), "missing") != 7 {
		t.Errorf("Verify of an empty cluster: got %v, want a missing keyspace and six missing tables", err)
	}
	for _, want := range []int{7, 0} {
		if done, err := cassandra.Apply(t.Context(), cfg, cluster); len(done) != want || err != nil {
			t.Errorf("Apply: got %q, %v, want %d done", done, err, want)
		}
	}
	must.OK(t, cassandra.Verify(t.Context(), cfg, cluster))
	cfg.TTL = time.Hour
	expect.Error(t, cassandra.Verify(t.Context(), cfg, cluster), "table feeds: default_time_to_live is 0: want 3600", "another ttl")
	if done, err := cassandra.Apply(t.Context(), cfg, cluster); len(done) != 1 || err != nil {
		t.Errorf("Apply of another ttl: got %q, %v, want one done", done, err)
	}
	cluster.Replicas = 2
	if done, err := cassandra.Apply(t.Context(), cfg, cluster); len(done) != 0 || err == nil {
		t.Errorf("Apply of other replicas: got %q, %v, want an error", done, err)
	}
}

// A process can start before its store is up, and runs without it.
func TestStore_Unavailable(t *testing.T) {
	cluster := cassandra.DefaultCluster()
	cluster.Hosts = []string{"127.0.0.1:1"}
	s := must.Get(cassandra.New("standby", config(), cluster, 100, slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	time.Sleep(50 * time.Millisecond) // Run tries to connect
	expect.False(t, s.Connected(), "connected to no cluster")
	expect.Is(t, s.Write(t.Context(), feedstore.Batch{}), cassandra.ErrUnavailable, "Write")
	if _, _, err := s.Page(t.Context(), "user:1", math.MaxInt64, 1); !errors.Is(err, cassandra.ErrUnavailable) || !strings.Contains(err.Error(), "standby") {
		t.Errorf("Page: got %v, want %v, with the store's name", err, cassandra.ErrUnavailable)
	}
	cancel()
	running.Wait()
}

// A RetryingWriter retries until ctx ends, but not for an invalid batch.
func TestRetryingWriter(t *testing.T) {
	cluster := cassandra.DefaultCluster()
	cluster.Hosts = []string{"127.0.0.1:1"}
	s := must.Get(cassandra.New("standby", config(), cluster, 100, slog.New(slog.DiscardHandler)))(t)
	store := cassandra.RetryingWriter{Store: s}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	expect.Is(t, store.Write(ctx, feedstore.Batch{}), context.DeadlineExceeded, "Write to an unavailable store")
	bad := feedstore.Batch{Deleted: []schemas.DeletedUser{{User: "user:\x00"}}}
	expect.Fails(t, store.Write(t.Context(), bad), "Write of a bad batch")
}

// numbered writes the entries of each user in order, for many users in parallel, and counts the acknowledged ones.
type numbered struct {
	s      *cassandra.Store
	prefix string
	acked  []int64 // by user
	errs   []int64
	wg     sync.WaitGroup
}

func writeNumbered(ctx context.Context, s *cassandra.Store, users int) *numbered {
	w := &numbered{s: s, prefix: fmt.Sprintf("user:%d-", time.Now().UnixNano()), acked: make([]int64, users), errs: make([]int64, users)}
	for i := range users {
		w.wg.Go(func() {
			for ctx.Err() == nil {
				n := w.acked[i] + 1
				e := schemas.FeedEntry{User: w.user(i), Position: n, Time: schemas.Micros(n), ServedItem: schemas.ServedItem{Pin: "pin:1"}}
				if err := s.Write(ctx, feedstore.Batch{Entries: []schemas.FeedEntry{e}}); err == nil {
					w.acked[i] = n
				} else if ctx.Err() == nil {
					w.errs[i]++
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	return w
}

func (w *numbered) user(i int) schemas.UserID { return schemas.UserID(fmt.Sprint(w.prefix, i)) }

// pageOf reads the newest page and retries, because the node may have just been started.
func pageOf(t *testing.T, s *cassandra.Store, user schemas.UserID, n int) (got []schemas.FeedEntry) {
	t.Helper()
	eventually.OK(t, func() (err error) {
		got, _, err = s.Page(t.Context(), user, math.MaxInt64, n)
		return err
	})
	return got
}

// Acknowledged entries survive a kill, and the session recovers by itself.
func TestRealCassandraKilled(t *testing.T) {
	s := cassandratest.Start(t, config(), at(t, 0), 100_000)
	ctx, cancel := context.WithCancel(t.Context())
	w := writeNumbered(ctx, s, 32)
	for range 3 {
		time.Sleep(500 * time.Millisecond) // so that the kill hits traffic
		service(t, "kill", 0)
		service(t, "start", 0)
		back := time.Now()
		eventually.OK(t, func() error {
			return s.Write(t.Context(), feedstore.Batch{Deleted: []schemas.DeletedUser{{User: "user:gone"}}})
		})
		t.Logf("writes succeed %s after the recovery of the store", time.Since(back).Round(time.Millisecond))
	}
	cancel()
	w.wg.Wait()
	written, failed := int64(0), int64(0)
	for i, want := range w.acked {
		written, failed = written+want, failed+w.errs[i]
		got := pageOf(t, s, w.user(i), 100_000)
		expect.Between(t, int64(len(got)), want, want+1, "entries of user %d, with one in flight", i)
	}
	expect.AtLeast(t, failed, 1, "writes that met the kills")
	t.Logf("%d entries acknowledged, %d writes failed", written, failed)
}

// If a store hangs, a read ends with its context. The store recovers by itself.
func TestRealCassandraPaused(t *testing.T) {
	s := cassandratest.Start(t, config(), at(t, 0), 100)
	service(t, "pause", 0)
	resume := sync.OnceFunc(func() { service(t, "resume", 0) })
	defer resume()
	// A thread of the server may run for a moment after the signal, so the first pages may succeed.
	eventually.True(t, "a page of the store that hangs", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, _, err := s.Page(ctx, "user:1", math.MaxInt64, 10)
		if took := time.Since(began); took > config().Timeout/2 { // then it waited for the node
			t.Fatalf("it took %s, want about 200 ms", took)
		}
		return errors.Is(err, context.DeadlineExceeded)
	})
	resume()
	pageOf(t, s, "user:1", 10)
}
