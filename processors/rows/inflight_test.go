package rows

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// waiting returns the value of oldest_pending_record_age_seconds of group t.
func waiting(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	families, err := reg.Gather()
	must.OK(t, err)
	for _, f := range families {
		if f.GetName() == metricPrefix+"oldest_pending_record_age_seconds" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("it is not told for how long records wait")
	return 0
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
			begun, end := make(chan struct{}), make(chan struct{})
			goOn := sync.OnceFunc(func() { close(end) })
			hang := func(where string) {
				if where == hangs && armed.CompareAndSwap(true, false) {
					close(begun)
					<-end
				}
			}
			g := Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(*Tx, *schemas.DeletedUser) error {
				hang(callback)
				return nil
			})}}
			env := w.env(t)
			env.Metrics = reg
			r, err := New(w.config(t.TempDir()), env, g)
			must.OK(t, err)
			r.crash = func(point) { hang(commit) }
			start(t, r)
			t.Cleanup(goOn)
			w.send(t, "t-in", 0, 8, user)
			eventually.True(t, "the first are applied", func() bool { return r.Status().Counters.Records == 8 })
			eventually.True(t, "nothing is in hand", func() bool { return waiting(t, reg) == 0 })
			armed.Store(true)
			w.send(t, "t-in", 8, 1, user)
			<-begun
			first := waiting(t, reg)
			eventually.True(t, "what is in hand gets older", func() bool { return waiting(t, reg) > first+0.1 })
			if got := r.Readiness(); !got.Ready || len(got.Partitions) != testPartitions {
				t.Errorf("while it hangs: %+v, want that it is ready", got)
			}
			goOn()
			eventually.True(t, "the last is applied", func() bool { return r.Status().Counters.Records == 9 })
			eventually.True(t, "nothing is in hand any more", func() bool { return waiting(t, reg) == 0 })
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
		if got := f.age(at(now)); got != time.Duration(want)*time.Second {
			t.Errorf("%s: it is %s old, want %d s", when, got, want)
		}
	}
	check("nothing was given", 1, 0)
	f.accept(func() time.Time { return at(1) })
	f.accept(func() time.Time { return at(5) })
	check("two were given", 7, 6)
	f.seal()
	check("they are being committed", 8, 7)
	f.accept(func() time.Time { return at(9) })
	check("a third one beside them", 10, 9)
	f.commit()
	check("they are durable", 10, 1)
	f.setUndelivered(at(4))
	check("records do not come", 10, 6)
	f.setUndelivered(time.Time{})
	check("they have come", 10, 1)
	f.seal()
	f.commit()
	check("all is durable", 11, 0)
	f.accept(func() time.Time { return at(20) })
	check("the clock went back", 15, 0)
}

// Undelivered records are detected at the first check of their idle input, and no longer reported once they were delivered.
func TestWaitingSeconds_ReportsUndeliveredRecords(t *testing.T) {
	t.Parallel()
	w := newWire(t)
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
		name    string
		applied int64
		told    bool
	}{
		{"the first was applied a moment ago", 0, false},
		{"and none since", 0, true},
		{"and none for long", 0, true},
		{"the second has come", 1, false},
		{"the third has not", 1, true},
		{"all have come", 2, false},
		{"it is idle", 2, false},
	} {
		stuck.applied = []int64{c.applied}
		stuck.checkIdleInputs(inputs)
		if told := stuck.inFlight.age(time.Now().Add(time.Second)) > 0; told != c.told {
			t.Errorf("%s: told %t, want %t", c.name, told, c.told)
		}
	}
}
