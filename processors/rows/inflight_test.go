package rows

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// waiting returns the value of oldest_pending_record_age_seconds of group t.
func waiting(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	return metricstest.Sum(t, reg, metricPrefix+"oldest_pending_record_age_seconds")
}

// A group whose callback or commit hangs reports no error. The metric reports that it has an unprocessed record, and the
// status that it is ready, exactly as long as it hangs.
func TestWaitingSeconds_ReportsHangingCallbackAndCommit(t *testing.T) {
	t.Parallel()
	const callback, commit = "callback", "commit"
	for _, hangs := range []string{callback, commit} {
		t.Run(hangs, func(t *testing.T) {
			t.Parallel()
			w, reg := newWire(t), prometheus.NewRegistry()
			var armed atomic.Bool
			hanging, end := make(chan struct{}), make(chan struct{})
			resume := sync.OnceFunc(func() { close(end) })
			hang := func(where string) {
				if where == hangs && armed.CompareAndSwap(true, false) {
					close(hanging)
					<-end
				}
			}
			g := Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(*Tx, *schemas.DeletedUser) error {
				hang(callback)
				return nil
			})}}
			env := w.env(t)
			env.Metrics = reg
			r := must.Get(New(w.config(t.TempDir()), env, g))(t)
			r.crash = func(point) { hang(commit) }
			start(t, r)
			t.Cleanup(resume)
			w.send(t, "t-in", 0, 8, user)
			eventually.True(t, "the first are applied", func() bool { return r.Status().Counters.Records == 8 })
			eventually.True(t, "no record is in flight", func() bool { return waiting(t, reg) == 0 })
			armed.Store(true)
			w.send(t, "t-in", 8, 1, user)
			<-hanging
			first := waiting(t, reg)
			eventually.True(t, "the age of the record grows", func() bool { return waiting(t, reg) > first+0.1 })
			if got := r.Readiness(); !got.Ready || len(got.Partitions) != testPartitions {
				t.Errorf("while it hangs: %+v, want ready", got)
			}
			resume()
			eventually.True(t, "the last is applied", func() bool { return r.Status().Counters.Records == 9 })
			eventually.True(t, "no record is in flight any more", func() bool { return waiting(t, reg) == 0 })
		})
	}
}

func TestInFlight_HasAgeOfOldestRecord(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	var f inFlight
	check := func(when string, now, want int) {
		t.Helper()
		expect.Equal(t, f.age(at(now)), time.Duration(want)*time.Second, "%s: age", when)
	}
	check("no records", 1, 0)
	f.accept(func() time.Time { return at(1) })
	f.accept(func() time.Time { return at(5) })
	check("two accepted", 7, 6)
	f.seal()
	check("two sealed", 8, 7)
	f.accept(func() time.Time { return at(9) })
	check("two sealed, one accepted", 10, 9)
	f.commit()
	check("two committed, one accepted", 10, 1)
	f.setUndelivered(at(4))
	check("older records undelivered", 10, 6)
	f.setUndelivered(time.Time{})
	check("all delivered", 10, 1)
	f.seal()
	f.commit()
	check("all committed", 11, 0)
	f.accept(func() time.Time { return at(20) })
	check("clock set back", 15, 0)
}

// Undelivered records are detected at the first check of their idle input, and no longer reported once they were delivered.
func TestWaitingSeconds_ReportsUndeliveredRecords(t *testing.T) {
	w := parallelWire(t)
	w.send(t, "t-in", 0, 3, func(int) string { return ownerIn(0) })
	r := newRunner(t, w, t.TempDir(), w.counter("t-out")) // reads another topic
	start(t, r)
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	here := r.slots[0].partition
	stuck := &partition{
		run: &groupRun{r: &Runner{log: silent(), topo: &topology{inputs: []Input{{topic: "t-in"}}}}, log: here.run.log}, ctx: here.ctx,
	}
	inputs := []idleInput{{applied: -1}}
	for _, c := range []struct {
		name     string
		applied  int64
		reported bool
	}{
		{"the first was just applied", 0, false},
		{"none since then", 0, true},
		{"none for a long time", 0, true},
		{"the second is applied", 1, false},
		{"the third is not", 1, true},
		{"all are applied", 2, false},
		{"idle", 2, false},
	} {
		stuck.applied = []int64{c.applied}
		stuck.checkIdleInputs(inputs)
		expect.Equal(t, stuck.inFlight.age(time.Now().Add(time.Second)) > 0, c.reported, "%s: reported", c.name)
	}
}
