package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// fired records the calls of a TimerFunc.
type fired struct {
	mu   sync.Mutex
	list []string
	late []time.Duration // time from the timer to its tick
}

func (f *fired) note(tx *Tx, name []byte, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, tx.Key()+"/"+string(name))
	f.late = append(f.late, tx.Time().Sub(at))
}

// clear removes the recorded calls.
func (f *fired) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.late = nil, nil
}

func (f *fired) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

// timerGroup returns a group that sets a timer for each record. The record's Time is the delay after its arrival, in
// milliseconds.
func (w *wire) timerGroup(f *fired, then TimerFunc) Group {
	return Group{
		Name: "t", Outputs: []string{"t-out"},
		Inputs: []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
			after := time.Duration(rec.Time) * time.Millisecond
			tx.Own().SetTimer(tx.Time().Add(after), fmt.Appendf(nil, "%d", rec.Time))
			return nil
		})},
		Timer: func(tx *Tx, o Owner, name []byte, at time.Time) error {
			if then != nil {
				if err := then(tx, o, name, at); err != nil {
					return err
				}
			}
			f.note(tx, name, at)
			increment(o)
			return nil
		},
	}
}

func TestTimers_FireOnceInOrder(t *testing.T) {
	t.Parallel()
	timersFireInOrder(t, newWire(t))
}

func timersFireInOrder(t *testing.T, w *wire) {
	f := new(fired)
	r, _ := w.run(t, t.TempDir(), w.timerGroup(f, nil))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	latest := tickTimeout
	for round := uint64(1); round <= 5 && latest >= tickTimeout; round++ { // a busy machine must not fail the test
		f.clear()
		now := time.Now()
		for _, ms := range []int{300, 1, 150} {
			rec := w.record(t, "t-in", "user:1", ms)
			rec.Timestamp = now // the same for all, so that they are due in this order however long sending takes
			must.OK(t, w.client.ProduceSync(t.Context(), rec).FirstErr())
		}
		eventually.True(t, "all have fired", func() bool { return count(t, r, "user:1") == int(3*round) })
		expect.NoDiff(t, f.names(), []string{"user:1/1", "user:1/150", "user:1/300"}, "fired")
		expect.AtLeast(t, slices.Min(f.late), 0, "lateness of timers, %v", f.late)
		latest = slices.Max(f.late)
	}
	expect.True(t, latest < tickTimeout, "timers fired up to %v after their times", latest)
}

func TestTimers_FireInSeveralTicks(t *testing.T) {
	t.Parallel()
	manyTimers(t, newWire(t))
}

func manyTimers(t *testing.T, w *wire) {
	f, cfg := new(fired), w.config(t.TempDir())
	cfg.MaxBatchTimers = 7
	r := must.Get(New(cfg, w.env(t), w.timerGroup(f, nil)))(t)
	start(t, r)
	const n = 100
	w.send(t, "t-in", 400, n, func(int) string { return "user:1" }) // due 400 to 500 ms after their arrival
	eventually.True(t, "all have fired", func() bool { return count(t, r, "user:1") == n })
	expect.NoDiff(t, len(f.names()), n, "calls")
	ticks := len(w.Records("t-ticks"))
	expect.Between(t, ticks, n/7, n, "ticks for %d timers, 7 per tick", n)
}

func TestTimers_SurviveRecovery(t *testing.T) {
	t.Parallel()
	timersSurvive(t, newWire(t))
}

func timersSurvive(t *testing.T, w *wire) {
	f := new(fired)
	r, stop := w.run(t, t.TempDir(), w.timerGroup(f, nil))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready }) // the timer's delay starts when the record is sent
	w.send(t, "t-in", 700, 1, func(int) string { return "user:1" })
	eventually.True(t, "the timer is set", func() bool { return r.Status().Counters.Records >= 1 })
	must.OK(t, stop())
	r = newRunner(t, w, t.TempDir(), w.timerGroup(f, nil)) // an empty directory: all rows come from the changelog
	start(t, r)
	eventually.True(t, "it has fired", func() bool { return count(t, r, "user:1") == 1 })
}

func TestTimers_DroppedTimerDoesNotFire(t *testing.T) {
	t.Parallel()
	w, f := newWire(t), new(fired)
	g := w.timerGroup(f, func(tx *Tx, o Owner, name []byte, at time.Time) error {
		if string(name) == "400" { // the first drops the second, which is due in the same tick
			o.DropTimer(at, []byte("second"))
		}
		return nil
	})
	set := g.Inputs[0].handle
	g.Inputs[0].handle = func(tx *Tx, value []byte) error {
		if err := set(tx, value); err != nil {
			return err
		}
		tx.Own().SetTimer(tx.Time().Add(400*time.Millisecond), []byte("second"))
		return nil
	}
	r, _ := w.run(t, t.TempDir(), g)
	w.send(t, "t-in", 400, 1, func(int) string { return "user:1" })
	w.send(t, "t-in", 900, 1, func(int) string { return "user:2" })
	eventually.True(t, "the last have fired", func() bool { return count(t, r, "user:1") == 1 && count(t, r, "user:2") == 2 })
	got := f.names()
	slices.Sort(got) // they are in different partitions
	expect.NoDiff(t, got, []string{"user:1/400", "user:2/900", "user:2/second"}, "fired")
}

func TestTimers_BadTimerGoesToDeadLetters(t *testing.T) {
	t.Parallel()
	w, f := newWire(t), new(fired)
	r := newRunner(t, w, t.TempDir(), w.timerGroup(f, func(tx *Tx, o Owner, name []byte, _ time.Time) error {
		if string(name) == "200" {
			o.Put([]byte("half"), nil)
			return schemas.Bad("cannot be")
		}
		return nil
	}))
	start(t, r)
	w.send(t, "t-in", 200, 3, func(int) string { return "user:1" })
	eventually.True(t, "the others have fired", func() bool { return count(t, r, "user:1") == 2 })
	deadLetters := w.Records(topics.DeadLetters)
	must.Equal(t, len(deadLetters), 1, "dead letters")
	got, err := w.Streams.DeadLetters.Decode(deadLetters[0].Value)
	if err != nil || got.Topic != "t-ticks" || string(got.Key) != "user:1" || string(got.Value) != "200" || got.Reason != "cannot be" {
		t.Errorf("dead letter %+v, %v", got, err)
	}
	for _, rec := range w.Records("t-table") {
		expect.False(t, strings.HasSuffix(string(rec.Key), "half"), "a row of the bad timer's callback was written")
	}
}

// The timestamp of a tick, which the broker sets on Kafka, decides which timers are due. The clock of this process does
// not.
func TestTick_TimestampDecides(t *testing.T) {
	t.Parallel()
	w, f := newWire(t), new(fired)
	r, _ := w.run(t, t.TempDir(), w.timerGroup(f, nil))
	w.send(t, "t-in", int(time.Hour/time.Millisecond), 1, func(int) string { return "user:1" })
	eventually.True(t, "the timer is set", func() bool { return r.Status().Counters.Records == 1 })
	tick := func(at time.Time) {
		rec := &kgo.Record{Topic: "t-ticks", Partition: topics.Partition("user:1", testPartitions), Timestamp: at}
		must.OK(t, w.client.ProduceSync(t.Context(), rec).FirstErr())
	}
	tick(time.UnixMilli(1))
	eventually.True(t, "the tick of 1970 is applied", func() bool { return r.Status().Counters.Records == 2 })
	expect.Equal(t, len(f.names()), 0, "timers fired by a tick of 1970")
	tick(time.Now().Add(2 * time.Hour))
	eventually.True(t, "it has fired", func() bool { return count(t, r, "user:1") == 1 })
}

// A tick that the brokers do not answer does not delay the end of Run.
func TestRun_StopsWhileTickIsUnanswered(t *testing.T) {
	t.Parallel()
	w, f := newWire(t), new(fired)
	held, release := w.holdTicks(t)
	defer release()
	r := newRunner(t, w, t.TempDir(), w.timerGroup(f, nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.send(t, "t-in", 1, 1, func(int) string { return "user:1" })
	eventually.True(t, "a tick is held", func() bool { return held() > 0 })
	cancel()
	select {
	case err := <-ended:
		must.OK(t, err)
	case <-time.After(r.cfg.HandoverTimeout + patience/4): // a busy machine takes seconds
		t.Error("Run waits for the response to a tick")
		release()
		must.OK(t, <-ended)
	}
}

// holdTicks makes the brokers leave every tick unanswered until release. held returns their number.
func (w *wire) holdTicks(t *testing.T) (held func() int64, release func()) {
	t.Helper()
	meta := must.Get(w.admin.Metadata(t.Context(), "t-ticks"))(t)
	id := meta.Topics["t-ticks"].ID
	var hits atomic.Int64
	var released atomic.Bool
	w.Broker().ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		isTick := func(rt kmsg.ProduceRequestTopic) bool { return rt.Topic == "t-ticks" || rt.TopicID == id }
		if released.Load() || !slices.ContainsFunc(req.(*kmsg.ProduceRequest).Topics, isTick) {
			return nil, nil, false
		}
		hits.Add(1)
		return nil, nil, true
	})
	return hits.Load, func() { released.Store(true) }
}

func TestSetTimer_RequiresTimerFunc(t *testing.T) {
	g := group()
	g.Timer = nil
	b := newBench(t, g)
	expect.Error(t, b.callAs("k", func(tx *Tx) error { tx.Own().SetTimer(time.Now(), nil); return nil }), "no Timer", "error")
}
