package rows

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// These tests disturb a running group: leaders and coordinators move, responses are lost, records are refused, members join
// and leave. Meanwhile, a driver sends numbered records. At the end, the rows must count each record once, the outputs must
// contain each once, and each store must equal the changelog.

// cluster is a wire with several brokers.
type cluster struct {
	*wire
	brokers *kfake.Cluster
	dir     string
	opts    []kfake.Opt
	net     *faultnet.Net // of the members only
}

func newCluster(t *testing.T, brokers int, opts ...kfake.Opt) *cluster {
	t.Helper()
	c := &cluster{net: faultnet.New(), dir: t.TempDir(), opts: append(opts,
		kfake.NumBrokers(brokers), kfake.GroupMinSessionTimeout(time.Second), kfake.SleepOutOfOrder())}
	c.open(t)
	registry := srfake.New()
	t.Cleanup(registry.Close)
	on := topicstest.On(t, topics.Kafka{Brokers: c.brokers.ListenAddrs(), Partitions: testPartitions, Embedded: true}, nil)
	on.Registry = registry.URL()
	c.wire = connect(on)
	c.createAll(t)
	return c
}

// open starts the brokers on their directory.
func (c *cluster) open(t *testing.T, more ...kfake.Opt) {
	t.Helper()
	brokers := must.Get(kfake.NewCluster(append(append(more, kfake.DataDir(c.dir)), c.opts...)...))(t)
	t.Cleanup(brokers.Close)
	c.brokers = brokers
}

// memberSet runs the members of the group in this process.
type memberSet struct {
	t              *testing.T
	c              *cluster
	dirs           []string
	sessionTimeout time.Duration // 0: that of config
	at             func(point)   // called at points where a process may die; nil: nothing is called
	errs           atomic.Int64  // errors returned by Run
	late           atomic.Int64  // last commits of partitions that were refused
	wg             sync.WaitGroup
}

// join starts a member and restarts it after each failure until leave is called.
func (m *memberSet) join(dir string) (leave func()) {
	env := m.c.env(m.t)
	env.Kafka.Dial = m.c.net.Dial
	cfg := m.c.config(dir)
	cfg.SessionTimeout = cmp.Or(m.sessionTimeout, cfg.SessionTimeout)
	r := must.Get(New(cfg, env, tortureGroup(m.c.wire)))(m.t)
	r.log = watched(m.t, "last batch not committed", &m.late)
	r.crash = m.at
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})
	m.wg.Go(func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := r.Run(ctx); err != nil {
				m.errs.Add(1)
				m.t.Logf("Run of a member: %v", err)
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); <-done }
}

// soon is the session timeout in tests that wait for the death of members, for example when a member's Run fails and it
// rejoins.
const soon = 2 * time.Second

// newMemberSet starts two members, whose Run may return errors.
func newMemberSet(t *testing.T, c *cluster) (m *memberSet, leave func()) {
	t.Helper()
	m = &memberSet{t: t, c: c, dirs: []string{t.TempDir(), t.TempDir()}, sessionTimeout: soon}
	first, second := m.join(m.dirs[0]), m.join(m.dirs[1])
	return m, func() { first(); second() }
}

// churn returns how long disturbances last: two seconds, one with -short, or the value of ROWS_CHURN.
func churn(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ROWS_CHURN")
	switch {
	case text == "" && testing.Short():
		return time.Second
	case text == "":
		return 2 * time.Second
	}
	return must.Get(time.ParseDuration(text))(t)
}

// disturb calls f repeatedly while records flow.
func disturb(t *testing.T, every time.Duration, f func(i int)) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i, end := 0, time.Now().Add(churn(t)); time.Now().Before(end); i++ {
		f(i)
		<-tick.C
	}
}

// verify stops the driver and compares all results with the sent records.
func (m *memberSet) verify(d *driver, leave func()) {
	m.t.Helper()
	d.cancel()
	<-d.done
	d.caughtUp(m.t, "at the end")
	leave()
	d.holdsAll(m.t, m.dirs...)
}

func TestCluster_LeadersAndCoordinatorsMove(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	m, leave := newMemberSet(t, c)
	d := drive(t, c.wire, 300)
	leaders := map[int32]bool{}
	disturb(t, 100*time.Millisecond, func(i int) {
		c.brokers.ShufflePartitionLeaders()
		leaders[c.brokers.LeaderFor("t-table", 0)] = true
		if i%4 == 0 {
			c.brokers.RehashCoordinators()
		}
	})
	m.verify(d, leave)
	expect.AtLeast(t, len(leaders), 2, "leaders of one partition, %v", leaders)
}

// A broker processes a request, and the response is lost with the connection.
func TestCluster_ResponsesAreLost(t *testing.T) {
	t.Parallel()
	always := []kmsg.Key{kmsg.Produce, kmsg.EndTxn, kmsg.OffsetCommit} // TxnOffsetCommit is not used: the rows contain the applied offsets
	for _, c := range []struct {
		name string
		keys []kmsg.Key // that must be hit
		opts []kfake.Opt
	}{
		{"produce requests add partitions to a transaction", always, nil},
		{"partitions are added to a transaction", append(always, kmsg.AddPartitionsToTxn), []kfake.Opt{kfake.MaxVersions(kversion.V3_9_0())}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			responsesLost(t, newCluster(t, 3, c.opts...), c.keys)
		})
	}
}

func responsesLost(t *testing.T, c *cluster, keys []kmsg.Key) {
	lost := append(keys, kmsg.InitProducerID, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.ListOffsets) // used at starts
	for _, key := range lost {
		c.net.Cut(key, 5)
	}
	m, leave := newMemberSet(t, c)
	d := drive(t, c.wire, 300)
	disturb(t, 50*time.Millisecond, func(int) {})
	for _, key := range keys {
		eventually.True(t, "a response to "+key.Name()+" is lost", func() bool { return c.net.Hits(key) > 0 })
	}
	for _, key := range lost {
		t.Logf("%s: %d responses lost", key.Name(), c.net.Hits(key))
		c.net.Cut(key, 0)
	}
	m.verify(d, leave)
}

// A broker processes a request and responds that the outcome is unknown.
func TestCluster_ResponsesHaveUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	m, leave := newMemberSet(t, c)
	d := drive(t, c.wire, 300)
	var faults []*kfake.FaultHandle
	disturb(t, 50*time.Millisecond, func(int) {
		faults = append(faults,
			c.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t-table", Err: kerr.RequestTimedOut}),
			c.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: "t", Err: kerr.RequestTimedOut}))
	})
	hitAll(t, faults, 20)
	m.verify(d, leave)
}

// An emitted record is refused permanently while rows of the same transaction are accepted. Nothing of the transaction may
// remain.
func TestCluster_RefusedEmitAbortsItsRows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	m, leave := newMemberSet(t, c)
	d := drive(t, c.wire, 300)
	var faults []*kfake.FaultHandle
	disturb(t, 400*time.Millisecond, func(int) {
		faults = append(faults, c.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t-out", Err: kerr.InvalidRecord}))
	})
	hitAll(t, faults, 3)
	eventually.True(t, "Run returns the refusal", func() bool { return m.errs.Load() > 0 })
	m.verify(d, leave)
}

// hitAll waits until a number of faults were hit, even on a slow machine, and removes the others.
func hitAll(t *testing.T, faults []*kfake.FaultHandle, least int) {
	t.Helper()
	hits := 0
	eventually.True(t, fmt.Sprint(least, " faults are hit"), func() bool {
		hits = 0
		for _, f := range faults {
			hits += f.Hits()
		}
		return hits >= least
	})
	for _, f := range faults {
		f.Remove()
	}
	t.Logf("%d faults hit", hits)
}

// A member joins and leaves every two seconds. With ROWS_CHURN=2m, the test runs for two minutes.
func TestCluster_MembersJoinAndLeave(t *testing.T) { // not parallel: it measures a time
	c := newCluster(t, 3)
	m := &memberSet{t: t, c: c, dirs: []string{t.TempDir(), t.TempDir()}}
	stay := m.join(m.dirs[0])
	d := drive(t, c.wire, 200)
	const bound = 5 * time.Second
	longest := time.Hour
	for try := 0; try < 3 && longest > bound; try++ { // a busy machine must not fail the test
		stalls, end, changes := watchStalls(d), time.Now().Add(3*churn(t)), 0
		for ; time.Now().Before(end); changes += 2 {
			leave := m.join(m.dirs[1])
			pauseFor(t, time.Second)
			leave()
			pauseFor(t, time.Second)
		}
		longest = stalls()
		t.Logf("%d changes, longest stall %v", changes, longest)
	}
	expect.AtMost(t, longest, bound, "time without output")
	expect.Equal(t, m.errs.Load(), 0, "runs that ended with an error")
	m.verify(d, stay)
}

// pauseFor waits while records flow.
func pauseFor(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// watchStalls measures the longest time until the last sent record is emitted. The returned function ends the measurement.
func watchStalls(d *driver) (longest func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	found := make(chan time.Duration, 1)
	go func() {
		var worst time.Duration
		for ctx.Err() == nil {
			began, last := time.Now(), d.sent.Load()
			for d.out.Load() < last && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			worst = max(worst, time.Since(began))
			time.Sleep(5 * time.Millisecond)
		}
		found <- worst
	}()
	return func() time.Duration { cancel(); return <-found }
}

// A member's connections are blocked for longer than its session timeout. Then the blocked requests are sent.
func TestCluster_MemberOutlivesItsSession(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	held := faultnet.New()
	m := &memberSet{t: t, c: c, dirs: []string{t.TempDir(), t.TempDir()}, sessionTimeout: soon}
	stay := m.join(m.dirs[0])
	other := *c
	other.net = held
	var armed atomic.Bool
	late := &memberSet{t: t, c: &other, sessionTimeout: soon, at: func(at point) { // inside an open transaction
		if at == beforeEnd && armed.CompareAndSwap(true, false) {
			held.Hold()
		}
	}}
	leave := late.join(m.dirs[1])
	d := drive(t, c.wire, 300)
	for range 2 {
		eventually.True(t, "both own partitions", func() bool { return len(c.members(t)) == 2 })
		armed.Store(true)
		eventually.True(t, "the session of the blocked member has expired", func() bool { return len(c.members(t)) == 1 })
		d.caughtUp(t, "while a member is blocked") // the other member owns all partitions
		held.Release()
		d.caughtUp(t, "after it continued")
	}
	m.verify(d, func() { stay(); leave() })
	expect.AtLeast(t, late.errs.Load()+late.late.Load(), 1, "refused commits of the blocked member")
}

// members returns the members of the group, if it is stable.
func (c *cluster) members(t *testing.T) []string {
	t.Helper()
	described := must.Get(c.admin.DescribeGroups(t.Context(), "t"))(t)
	var ids []string
	if g := described["t"]; g.State == "Stable" {
		for _, m := range g.Members {
			ids = append(ids, m.MemberID)
		}
	}
	return ids
}
