package cassandra_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/serving/feedstore/hedged"
)

const (
	readers      = 200 // users with a feed
	feedLength   = 200
	readRate     = 200              // pages per second
	readDeadline = 10 * time.Second // of a page; long, for a busy machine
)

// readsVariable names the variable with the number of pages to read in each state. It is 2,000 if the variable is not set.
const readsVariable = "CASSANDRA_TEST_READS"

// watched counts the reads of a store.
type watched struct {
	*cassandra.Store
	pages atomic.Int64
}

func (w *watched) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	w.pages.Add(1)
	return w.Store.Page(ctx, user, below, n)
}

// pair is two clusters with the same feeds, and the hedged store that reads from both.
type pair struct {
	*hedged.Store
	stores  [2]*watched
	proxies [2]*cassandratest.Proxy // in front of the clusters
	users   []schemas.UserID
}

func newPair(t *testing.T) *pair {
	t.Helper()
	cfg := config()
	cfg.Timeout = 2 * time.Second
	p := &pair{}
	for i := range p.stores {
		cluster := at(t, i)
		p.proxies[i] = cassandratest.StartProxy(t, cluster.Hosts[0])
		cluster.Hosts = []string{p.proxies[i].Address()}
		p.stores[i] = &watched{Store: cassandratest.Start(t, cfg, cluster, 1000)}
	}
	for i := range readers {
		p.users = append(p.users, schemas.UserID(fmt.Sprintf("user:%d-%d", time.Now().UnixNano(), i)))
	}
	p.write(t, 1, feedLength)
	reads := hedged.DefaultConfig()
	reads.FailbackReads = 20 // a healthy primary is first again after five seconds
	// The number of extra reads is then at most 0.05 + 0.02 + 40 / 2000 per read, plus the few in flight during a swap.
	reads.BudgetBurst = 2 * reads.FailoverLosses
	p.Store = must.Get(hedged.New(reads, hedged.Stores{Primary: p.stores[0], Standby: p.stores[1]}, prometheus.NewRegistry()))(t)
	t.Cleanup(p.Close)
	return p
}

// write writes the entries of some positions for each user to both stores, and retries until it succeeds.
func (p *pair) write(t *testing.T, from, to int64) {
	t.Helper()
	for _, user := range p.users {
		var b feedstore.Batch
		for n := from; n <= to; n++ {
			b.Entries = append(b.Entries, schemas.FeedEntry{User: user, Position: n, Time: schemas.Micros(n), ServedItem: schemas.ServedItem{
				Pin: schemas.PinID(fmt.Sprintf("pin:%s-%d", user, n)), Source: schemas.Following, Facets: schemas.Facets{Author: "user:author", Board: "board:b"},
			}})
		}
		for _, s := range p.stores {
			eventually.OK(t, func() error { return s.Write(t.Context(), b) })
		}
	}
}

// outcome is the result of the reads.
type outcome struct {
	failed int64
	took   []time.Duration // sorted
	calls  [2]int64        // of each store
}

func (o outcome) percentile(p float64) time.Duration { return o.took[int(float64(len(o.took)-1)*p)] }

// extra returns the number of extra calls per read. It excludes the calls of a store that refuses them at once.
func (o outcome) extra(refuses int) float64 {
	calls := o.calls[0] + o.calls[1]
	if refuses >= 0 {
		calls = o.calls[1-refuses]
	}
	return float64(calls)/float64(len(o.took)) - 1
}

// failures returns the violated expectations, which hold for any fault of one store.
func (o outcome) failures(refuses int) (failures []string) {
	if o.failed > 0 {
		failures = append(failures, fmt.Sprintf("%d of %d pages were not answered", o.failed, len(o.took)))
	}
	if extra := o.extra(refuses); extra > maxExtra {
		failures = append(failures, fmt.Sprintf("%.3f extra reads, want at most %.1f", extra, maxExtra))
	}
	return failures
}

// read reads the newest pages of random users at a constant rate, regardless of the results.
func (p *pair) read(t *testing.T, n int) outcome {
	t.Helper()
	var o outcome
	for i, s := range p.stores {
		o.calls[i] = -s.pages.Load()
	}
	o.took = make([]time.Duration, n)
	var failed atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / readRate)))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), readDeadline)
			defer cancel()
			start := time.Now()
			entries, _, err := p.Page(ctx, p.users[rand.IntN(readers)], math.MaxInt64, 25)
			o.took[i] = time.Since(start)
			if err != nil || len(entries) != 25 {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	p.Close() // also waits for warm reads
	for i, s := range p.stores {
		o.calls[i] += s.pages.Load()
	}
	slices.Sort(o.took)
	o.failed = failed.Load()
	t.Logf("%d pages: %d failed, p50 %s, p99 %s, p99.9 %s, longest %s; calls %v", n, o.failed,
		o.percentile(0.5), o.percentile(0.99), o.percentile(0.999), o.percentile(1), o.calls)
	return o
}

// maxExtra is the maximum of extra reads per read. The configuration allows 0.09. Each time that the stores swap
// places, the reads in flight are added: on a machine so busy that reads take a second, a tenth of all. Without bounds,
// a store that is slow or hangs costs an extra read for each.
const maxExtra = 0.2

// tries is how often a state is tried until all pages are answered. A machine that stalls for seconds stops both
// clusters at once, which no hedged read survives. A fault of the reads fails every try.
const tries = 8 // a machine that runs other tests, too, may stall a server for seconds, but not each time

// TestRealCassandraHedged reads pages while both of two clusters are up, and while one of them is down, hangs, or is slow.
// It checks that all reads are answered, and the number of extra reads. It prints times but does not check them,
// because the machine may be busy.
func TestRealCassandraHedged(t *testing.T) {
	p := newPair(t)
	n := cassandratest.Count(t, readsVariable)
	p.read(t, 1000) // warms up the servers and establishes the p99.9 of the stores
	p.settle(t)
	for _, c := range []struct {
		name     string
		fault    func(t *testing.T)
		heal     func(t *testing.T)
		refuses  int // the store that refuses calls at once; -1: none
		asksBoth bool
	}{
		{"both up", func(*testing.T) {}, func(*testing.T) {}, -1, false},
		{"primary slow", func(*testing.T) { p.proxies[0].Slow(true) }, func(*testing.T) { p.proxies[0].Slow(false) }, -1, true},
		{"primary hangs", func(t *testing.T) { service(t, "pause", 0) }, func(t *testing.T) { service(t, "resume", 0) }, -1, true},
		{"primary killed", func(t *testing.T) { service(t, "kill", 0) }, func(t *testing.T) { service(t, "start", 0) }, 0, true},
		{"standby slow", func(*testing.T) { p.proxies[1].Slow(true) }, func(*testing.T) { p.proxies[1].Slow(false) }, -1, false},
		{"standby hangs", func(t *testing.T) { service(t, "pause", 1) }, func(t *testing.T) { service(t, "resume", 1) }, -1, false},
		{"standby killed", func(t *testing.T) { service(t, "kill", 1) }, func(t *testing.T) { service(t, "start", 1) }, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault(t)
			var o outcome
			var failures []string
			for range tries {
				o = p.read(t, n)
				failures = o.failures(c.refuses)
				if c.asksBoth && o.calls[1] < int64(n)/4 { // on a busy machine, the first reads do not show that a store is slow
					failures = append(failures, fmt.Sprintf("the standby had %d calls: the fault had no effect", o.calls[1]))
				}
				if len(failures) == 0 {
					break
				}
			}
			c.heal(t)
			if len(failures) > 0 {
				t.Errorf("in each of %d tries: %s", tries, strings.Join(failures, "; "))
			}
			for i, proxy := range p.proxies {
				if held := proxy.Held(); strings.HasSuffix(c.name, "slow") && c.name == [2]string{"primary slow", "standby slow"}[i] && held == 0 {
					t.Error("no answer was late: the fault had no effect")
				}
			}
			p.settle(t)
		})
	}
	p.write(t, feedLength+1, feedLength+20)
	p.equal(t)
}

// settle waits until both stores answer and the primary is first again.
func (p *pair) settle(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(2 * eventually.Patience)
	for {
		o := p.read(t, 400)
		if o.failed == 0 && float64(o.calls[0]) > 0.9*400 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the primary is not first again after %s: calls %v", 2*eventually.Patience, o.calls)
		}
	}
}

// equal checks that both stores have the same rows.
func (p *pair) equal(t *testing.T) {
	t.Helper()
	for _, user := range p.users {
		var rows [2][]schemas.FeedEntry
		for i, s := range p.stores {
			rows[i] = pageOf(t, s.Store, user, 10_000)
		}
		expect.Equal(t, len(rows[0]), feedLength+20, "entries of %s", user)
		expect.NoDiff(t, rows[1], rows[0], "%s, primary (-) and standby (+)", user)
	}
}

var _ feed.Store = (*watched)(nil)
