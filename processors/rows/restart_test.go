package rows

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// runUntilDone runs a group until it has committed the offsets of the n records of t-in. It restarts the group after an
// error, like the supervisor, and returns the errors. A fatal error ends the test, because the supervisor would stop.
func runUntilDone(t *testing.T, w *wire, r *Runner, n int64) []error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan []error, 1)
	var stopped atomic.Bool
	go func() {
		var errs []error
		for ctx.Err() == nil {
			if err := r.Run(ctx); err != nil {
				errs = append(errs, err)
				t.Logf("Run: %v", err)
			}
			var fatal *FatalError
			if stopped.Store(errors.As(errors.Join(errs...), &fatal)); stopped.Load() {
				break
			}
		}
		done <- errs
	}()
	eventually.True(t, "offsets are committed", func() bool {
		if stopped.Load() {
			t.Fatalf("the group has stopped for good: %v", <-done)
		}
		return w.Committed("t", "t-in") == n
	})
	cancel()
	return <-done
}

// setCommitted sets the group's committed offsets of t-in. The group must not run.
func (w *wire) setCommitted(t testing.TB, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	for p := range int32(testPartitions) {
		offsets.AddOffset("t-in", p, at, -1)
	}
	eventually.True(t, "the group is empty", func() bool {
		set, err := w.admin.CommitOffsets(t.Context(), "t", offsets)
		return err == nil && set.Error() == nil
	})
}

// The group starts at the offsets that its rows contain, whatever its committed offsets are.
func TestOffsets_CommittedOnesAreAHint(t *testing.T) {
	t.Parallel()
	for name, at := range wrongOffsets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offsetsAreAHint(t, newWire(t), at)
		})
	}
}

// wrongOffsets are offsets that a group may have committed while its rows say 25 for each partition.
var wrongOffsets = map[string]int64{"back to the start": 0, "beyond what is applied": 60}

func offsetsAreAHint(t *testing.T, w *wire, at int64) {
	dir := t.TempDir()
	r, stop := w.run(t, dir, w.counter("t-in"))
	w.send(t, "t-in", 0, 100, user)
	whileRunning(t, r, "the first are applied", func() bool { return r.Status().Counters.Records == 100 })
	must.OK(t, stop())
	w.setCommitted(t, at)
	w.send(t, "t-in", 100, 100, user)
	r, stop = w.run(t, dir, w.counter("t-in"))
	whileRunning(t, r, "the rest is applied", func() bool { return r.Status().Counters.Records == 100 })
	must.OK(t, stop())
	w.emittedOnce(t, 200)
	expect.Equal(t, r.Status().Counters.Skipped, 0, "records read again")
}

func TestCallback_FailureIsRetriedExactlyOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	for _, c := range []struct {
		name string
		fail func() error
		want string
	}{
		{"error", func() error { return errors.New("dependency is unavailable") }, "dependency is unavailable"},
		{"panic", func() error { panic("bug") }, "bug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			var tries [n]atomic.Int64
			g := w.counter("t-in")
			g.Inputs = []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
				increment(tx.Own())
				if rec.Time%40 == 7 && tries[rec.Time].Add(1) < 3 { // in the middle of its writes
					return c.fail()
				}
				Send(tx, w.stream("t-out"), tx.Key(), rec)
				return nil
			})}
			r := newRunner(t, w, t.TempDir(), g)
			w.send(t, "t-in", 0, n, user)
			errs := runUntilDone(t, w, r, n)
			if len(errs) == 0 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("errors %v, want some with %q", errs, c.want)
			}
			w.emittedOnce(t, n)
			w.countedOnce(t, n)
		})
	}
}

// The memory of callbacks is discarded with uncommitted rows, so it never reflects more than the rows.
func TestMemory_IsDiscardedWithThePartition(t *testing.T) {
	t.Parallel()
	const n = 100
	w := newWire(t)
	var panics, memories, wrong atomic.Int64
	g := w.counter("t-in")
	g.Memory = func() any {
		memories.Add(1)
		return map[string]Number{}
	}
	g.Inputs = []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
		here := tx.Memory().(map[string]Number)
		count := increment(tx.Own())
		if here[tx.Key()]++; here[tx.Key()] > count {
			wrong.Add(1)
		}
		if rec.Time%25 == 24 && panics.Add(1) <= 3 { // drops the pending batch
			panic("bug")
		}
		Send(tx, w.stream("t-out"), tx.Key(), rec)
		return nil
	})}
	r := newRunner(t, w, t.TempDir(), g)
	w.send(t, "t-in", 0, n, func(int) string { return "user:1" })
	expect.Equal(t, len(runUntilDone(t, w, r, n)), 3, "errors")
	expect.Equal(t, wrong.Load(), 0, "uncommitted counts in memory")
	least, acquired := int64(4), int64(r.owned.Load()) // more than the least if the group rejoined meanwhile
	expect.Between(t, memories.Load(), least, acquired, "created memories: at most the number of acquired partitions")
}

// countedOnce reads the rows of users 0 to n-1 from the changelog.
func (w *wire) countedOnce(t testing.TB, n int) {
	t.Helper()
	rows := map[string][]byte{}
	for _, rec := range w.Records("t-table") {
		rows[string(rec.Key)] = rec.Value
	}
	for i := range n {
		expect.Equal(t, countIn(t, rows, user(i)), 1, "count of %s", user(i))
	}
}

// countIn returns a user's row "n", or 0 if it is missing.
func countIn(t testing.TB, rows map[string][]byte, user string) Number {
	t.Helper()
	value := rows[user+"\x00n"]
	if value == nil {
		return 0
	}
	return must.Get(packed.Decode[Number](value))(t)
}

// The broker applies EndTxn and then returns an error. The group cannot know the outcome until it restarts.
func TestCommit_UnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{true, false} {
		t.Run(map[bool]string{true: "applied", false: "not applied"}[applied], func(t *testing.T) {
			t.Parallel()
			unknownOutcome(t, newWire(t), applied)
		})
	}
}

func unknownOutcome(t *testing.T, w *wire, applied bool) {
	const n = 100
	hits, dir := w.failEndTxn(applied), t.TempDir()
	r := newRunner(t, w, dir, w.counter("t-in"))
	w.send(t, "t-in", 0, n, user)
	errs := runUntilDone(t, w, r, n)
	must.AtLeast(t, hits(), 1, "responses to commits with an error")
	if len(errs) == 0 || !strings.Contains(errs[0].Error(), "outcome unknown") {
		t.Errorf("errors %v, want some with an unknown outcome", errs)
	}
	w.emittedOnce(t, n)
	w.countedOnce(t, n)
	w.storesEqualLog(t, dir)
}

// failEndTxn answers three commits with an error, after or without applying them. Call it before the group is created.
func (w *wire) failEndTxn(applied bool) (hits func() int) {
	if applied {
		n, left := faultnet.New(), atomic.Int64{}
		left.Store(3)
		n.Alter(kmsg.EndTxn, 1, func(resp kmsg.Response) {
			if left.Add(-1) >= 0 {
				resp.(*kmsg.EndTxnResponse).ErrorCode = kerr.UnknownServerError.Code
			}
		})
		w.Kafka.Dial = n.Dial
		return func() int { return n.Hits(kmsg.EndTxn) }
	}
	return w.Broker().Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Count: 3,
		When: func(req kmsg.Request) bool { return req.(*kmsg.EndTxnRequest).Commit },
	}).Hits
}

// A commit succeeds on Kafka and fails in the local store. Recovery updates the store.
func TestCommit_StoreFailureIsRecovered(t *testing.T) {
	t.Parallel()
	const n = 100
	w, dir := newWire(t), t.TempDir()
	r := newRunner(t, w, dir, w.counter("t-in"))
	var hits atomic.Int64
	r.crash = func(at point) {
		if at == afterEnd && hits.Add(1) == 3 {
			for i := range r.slots {
				breakStore(r.slots[i].partition)
			}
		}
	}
	for i := range n {
		w.client.Produce(t.Context(), w.record(t, "t-in", user(i), i), nil)
	}
	errs := runUntilDone(t, w, r, n)
	if len(errs) == 0 || !errors.Is(errs[0], errClosed) {
		t.Errorf("errors %v, want those of the store", errs)
	}
	w.emittedOnce(t, n)
	w.countedOnce(t, n)
}

// breakStore makes all writes to the partition's store fail, like a failed disk, until the committer has stopped.
func breakStore(p *partition) {
	set := func(broken bool) {
		p.store.mu.Lock()
		defer p.store.mu.Unlock()
		p.store.closed = broken
	}
	set(true)
	p.wg.Go(func() {
		<-p.committerDone
		set(false)
	})
}

// A commit that fails because the session and the grace time are over is not the error of Run. Run returns the error that
// ended the session, which is what an operator needs to read.
func TestRun_DoesNotReturnErrorOfLateCommit(t *testing.T) {
	w := parallelWire(t)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	p := r.slots[0].partition
	p.cancel()
	p.mu.Lock()
	p.fail(context.Canceled)
	p.mu.Unlock()
	must.OK(t, stop())
}

// holdCommits holds the end of each transaction until release is closed. Each transaction sends to held first.
func holdCommits(r *Runner) (held, release chan struct{}) {
	held, release = make(chan struct{}, 1000), make(chan struct{})
	r.crash = func(at point) {
		if at == beforeEnd {
			held <- struct{}{}
			<-release
		}
	}
	return held, release
}

// topics.Wait and operators read a committed offset as proof that a record had its effect. Goka marks it when the
// callback returns.
func TestOffsets_AreCommittedAfterTheTransaction(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	held, release := holdCommits(r)
	start(t, r)
	whileRunning(t, r, "it is ready", func() bool { return r.Status().Ready })
	var beats atomic.Int64
	owner := ownersOfPartition0(1)[0]
	w.send(t, "t-in", 0, 3, func(int) string { return owner })
	<-held // the first record's callback has returned, and its transaction has not ended
	w.Broker().ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		beats.Add(1)
		return nil, nil, false
	})
	// sarama commits what is marked every 100 ms, and sends a heartbeat every 500 ms.
	eventually.True(t, "heartbeats have been sent", func() bool { return beats.Load() >= 3 })
	expect.Equal(t, w.Committed("t", "t-in"), 0, "offsets committed before the transaction has ended")
	close(release)
	eventually.True(t, "they are committed after the transaction", func() bool { return w.Committed("t", "t-in") == 3 })
}

// A partition that is handed over during a commit completes it, and then commits the pending batch. The next owner need not
// process these records again.
func TestClose_CommitsPendingBatch(t *testing.T) {
	t.Parallel()
	const first, then = 20, 30
	w := newWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	held, release := holdCommits(r)
	stop := start(t, r)
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	var parts []*partition
	for i := range r.slots {
		parts = append(parts, r.slots[i].partition)
	}
	w.send(t, "t-in", 0, first, user)
	for range parts {
		<-held
	}
	w.send(t, "t-in", first, then, user)
	eventually.True(t, "the other records wait for the commits", func() bool {
		called := int64(0)
		for _, p := range parts {
			called += p.appliedByTopic()["t-in"] + 1
		}
		return called == first+then
	})
	must.Equal(t, w.Committed("t", "t-in"), 0, "committed records while all commits are held")
	done := make(chan error, 1)
	go func() { done <- stop() }()
	eventually.True(t, "a partition is handed over", func() bool {
		return slices.ContainsFunc(parts, func(p *partition) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.closing
		})
	})
	close(release)
	must.OK(t, <-done)
	expect.NoDiff(t, w.Committed("t", "t-in"), first+then, "committed records")
	w.emittedOnce(t, first+then)
}

// All goroutines that Run has started have ended when it returns.
func TestRun_LeavesNoGoroutines(t *testing.T) {
	w := newRemoteWire(t) // a broker in this process has goroutines for each connection
	w.send(t, "t-in", 0, 20, user)
	running := goleak.IgnoreCurrent()
	g := w.counter("t-in")
	g.Timer = func(*Tx, Owner, []byte, time.Time) error { return nil }
	r := newRunner(t, w, t.TempDir(), g)
	stop := start(t, r)
	eventually.True(t, "all are applied", func() bool { return r.Status().Counters.Records == 20 })
	must.OK(t, stop())
	r.shared.Close()
	goleak.VerifyNone(t, running,
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick")) // sarama's, one per process
}

// The broker hangs during a commit. Run returns within its grace time, and the records are later processed once.
func TestRun_StopsWhileBrokerHangs(t *testing.T) {
	w := parallelWire(t)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	release := make(chan struct{})
	hung := make(chan struct{}, 100)
	w.Broker().ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		select {
		case <-release:
			return nil, nil, false
		default:
		}
		hung <- struct{}{}
		w.Broker().SleepControl(func() { <-release })
		return nil, nil, false
	})
	w.send(t, "t-in", 0, 50, user)
	<-hung
	began := time.Now()
	err := stop()
	expect.AtMost(t, time.Since(began), r.cfg.HandoverTimeout+5*time.Second, "duration of Run")
	t.Logf("Run: %v", err)
	close(release)
	r, stop = w.run(t, t.TempDir(), w.counter("t-in"))
	eventually.True(t, "all offsets are committed", func() bool { return w.Committed("t", "t-in") == 50 })
	must.OK(t, stop())
	w.emittedOnce(t, 50)
}

func TestRun_RecreatedTopicStopsTheGroup(t *testing.T) {
	t.Parallel()
	recreatedInput(t, newWire(t))
}

func recreatedInput(t *testing.T, w *wire) {
	dir := t.TempDir()
	w.countFirst(t, dir, 20)
	w.recreate(t, "t-in")
	runFailsForGood(t, newRunner(t, w, dir, w.counter("t-in")), "t-in was recreated", wantRemedy)
}

// wantRemedy is the remedy in every error that stops a group whose input has lost records.
const wantRemedy = "rebuild the group"

func TestSession_NextOffset(t *testing.T) {
	t.Parallel()
	id := [16]byte{1}
	for _, c := range []struct {
		name, topic      string
		found            bool
		at               position
		start, end, want int64
		fatal            string
	}{
		{name: "never applied", start: 3, end: 9, want: 3},
		{name: "after the last applied", found: true, at: position{id, 5}, start: 3, end: 9, want: 6},
		{name: "at the end", found: true, at: position{id, 8}, start: 3, end: 9, want: 9},
		{name: "log starts just after the last applied", found: true, at: position{id, 2}, start: 3, end: 9, want: 3},
		{name: "log starts later", found: true, at: position{id, 1}, start: 3, end: 9, fatal: "starts at 3, but t applied records only up to offset 1"},
		{name: "ticks start later", topic: "t-ticks", found: true, at: position{id, 1}, start: 3, end: 9, want: 3},
		{name: "log ends before", found: true, at: position{id, 9}, start: 3, end: 9, fatal: "records were lost"},
		{name: "another topic", found: true, at: position{[16]byte{2}, 5}, start: 3, end: 9, fatal: "was recreated"},
	} {
		g := &groupRun{r: &Runner{topo: &topology{name: "t", ticks: "t-ticks"}}}
		c.topic = cmp.Or(c.topic, "in")
		p := &partition{run: g, recovered: map[int]position{}}
		if c.found {
			p.recovered[0] = c.at
		}
		got, err := (&session{ids: map[string][16]byte{c.topic: id}}).resumeOffset(p, 0, c.topic, c.start, c.end)
		var fatal *FatalError
		switch {
		case c.fatal != "":
			if !errors.As(err, &fatal) || !strings.Contains(err.Error(), c.fatal) || !strings.Contains(err.Error(), wantRemedy) {
				t.Errorf("%s: error %v, want a fatal one with %q and a remedy", c.name, err, c.fatal)
			}
		case err != nil || got != c.want:
			t.Errorf("%s: starts at %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}
