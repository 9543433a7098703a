package rows

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

type gokaContext = goka.Context

// fakeRecord is a record as Goka passes it to a callback.
type fakeRecord struct {
	gokaContext
	topic  string
	key    string
	offset int64
	at     time.Time
}

func (r fakeRecord) Topic() goka.Stream    { return goka.Stream(r.topic) }
func (r fakeRecord) Key() string           { return r.key }
func (r fakeRecord) Offset() int64         { return r.offset }
func (r fakeRecord) Timestamp() time.Time  { return r.at }
func (r fakeRecord) Headers() goka.Headers { return nil }

// newPartition returns a partition without Kafka. The writes of its callbacks stay pending.
func newPartition(t testing.TB, g Group) *partition {
	t.Helper()
	b := newBench(t, g)
	r := &Runner{cfg: DefaultConfig(), topo: b.topo, log: silent()}
	r.meter = must.Get(newMeter(nil, g.Name))(t)
	run := &groupRun{r: r}
	run.ctx, run.cancel = context.WithCancelCause(t.Context())
	p := &partition{run: run, ctx: t.Context(), store: &store{db: b.db}, wakeup: make(chan struct{}, 1), applied: []int64{-1, -1}}
	p.capacity, p.state = sync.NewCond(&p.mu), b.state
	p.state.pending = newBatch(2)
	return p
}

// Counts of a callback are added up within its record, and discarded when the callback fails.
func TestTx_CountsAreUndoneWithTheirRecord(t *testing.T) {
	t.Parallel()
	p := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}})
	each := []counted{{"late", 2, true}, {"late", 5, false}, {"done", 7, false}}
	for i, c := range []struct {
		err  error
		want []counted
	}{{nil, each}, {errors.New("broken"), each}, {nil, slices.Concat(each, each)}} {
		var tx Tx
		p.state.begin(&tx, "key", "key", time.UnixMilli(5), nil)
		tx.Count("late")
		tx.Count("late")
		tx.Effect("late", 5) // the same name, but an effect
		tx.Effect("done", 3)
		tx.Effect("done", 4)
		must.Equal(t, p.state.end(&tx, c.err), c.err, "end")
		expect.NoDiffBut(t, cmp.AllowUnexported(counted{}), p.state.pending.counts, c.want, "after record %d: counted", i)
	}
}

// When the callback of a tick's second timer fails, neither the first timer nor the tick itself leaves a trace in the
// pending batch.
func TestTick_FailureLeavesNothing(t *testing.T) {
	t.Parallel()
	key, broken := ownersOfPartition0(1)[0], errors.New("dependency is unavailable")
	calls := 0
	p := newPartition(t, Group{Name: "g",
		Inputs: []Input{{topic: "in", handle: func(tx *Tx, _ []byte) error {
			tx.Own().SetTimer(tx.Time(), []byte("a"))
			tx.Own().SetTimer(tx.Time(), []byte("b"))
			return nil
		}}},
		Timer: func(_ *Tx, o Owner, name []byte, _ time.Time) error {
			if calls++; string(name) == "b" {
				return broken
			}
			o.Put([]byte("fired"), name)
			return nil
		},
	})
	p.handle(fakeRecord{topic: "in", key: key, offset: 4, at: time.UnixMilli(5)}, 0, nil)
	before := p.state.pending.mark()
	p.handle(fakeRecord{topic: "g-ticks", offset: 9, at: time.UnixMilli(6)}, 1, nil)
	expect.Equal(t, calls, 2, "timers called")
	expect.Equal(t, p.state.pending.mark(), before, "pending batch after the failed tick")
	if p.applied[0] != 4 || p.applied[1] != -1 || p.state.pending.messages != 1 || p.discard {
		t.Errorf("applied %v, %d messages pending, discard %v; want only the first record", p.applied, p.state.pending.messages, p.discard)
	}
	expect.Is(t, p.err, broken, "end of the partition")
	expect.Is(t, context.Cause(p.run.ctx), broken, "end of the group")
	p.handle(fakeRecord{topic: "in", key: key, offset: 5, at: time.UnixMilli(7)}, 0, nil)
	expect.Equal(t, p.applied[0], 4, "applied after the failure")
}

// heldReader blocks its first Get until it is released.
type heldReader struct {
	reader
	once          sync.Once
	reached, goOn chan struct{}
}

func (r *heldReader) Get(key []byte) ([]byte, io.Closer, error) {
	r.once.Do(func() {
		close(r.reached)
		<-r.goOn
	})
	return r.reader.Get(key)
}

// Goka reads the applied offsets in a separate goroutine, and does not wait for it at a handover. Closing the store during
// the read would crash the process.
func TestClose_WaitsForMarkRecovered(t *testing.T) {
	t.Parallel()
	p := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}})
	r := p.run.r
	r.cfg.Dir, r.fs, r.slots = t.TempDir(), vfs.Default, make([]slot, 1)
	var err error
	r.shared = must.Get(NewShared(r.cfg))(t)
	defer r.shared.Close()
	p.store = must.Get(r.openStore(identity{Topic: "g-table"}, 0))(t)
	p.client, err = kgo.NewClient()
	must.OK(t, err)
	p.ctx, p.cancel = context.WithCancel(t.Context())
	held := &heldReader{reader: p.store.db, reached: make(chan struct{}), goOn: make(chan struct{})}
	p.state.store = held

	found, closed := make(chan error, 1), make(chan error, 1)
	go func() { found <- p.MarkRecovered() }()
	<-held.reached
	go func() { closed <- p.Close() }()
	select {
	case err := <-closed:
		t.Errorf("closed while it was read: %v", err)
	case <-time.After(100 * time.Millisecond): // a Close that does not wait takes a tenth of that
	}
	close(held.goOn)
	must.OK(t, <-found)
	must.OK(t, <-closed)
	expect.Is(t, p.MarkRecovered(), errClosed, "recovered after it was closed")
}

// A retry is a new record and does not count as misplaced. A forwarded record that is undone does not count either.
func TestEmitRetry_IsNotMisplaced(t *testing.T) {
	t.Parallel()
	p := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}, Outputs: []string{"out"}})
	b := p.state.pending
	var tx Tx
	p.state.begin(&tx, "key", "key", time.UnixMilli(5), p)
	p.record = fakeRecord{topic: "in", at: time.UnixMilli(5)}
	tx.EmitRetry("out", 0, "key", nil, topics.Retry{Group: "g"})
	must.OK(t, p.state.end(&tx, nil))
	before := b.mark()
	p.forward(fakeRecord{topic: "in", key: "key", at: time.UnixMilli(5)}, 1, nil)
	expect.Equal(t, [2]int{b.misplaced, len(b.emits)}, [2]int{1, 2}, "misplaced records and all records")
	b.undo(before)
	expect.Equal(t, [2]int{b.misplaced, len(b.emits)}, [2]int{0, 1}, "misplaced records and all records after the undo")
	p.run.r.meter.committed(b, 0, true)
	if got := p.run.r.meter.counters(); got.Misplaced != 0 || got.Emitted != 1 {
		t.Errorf("%d records are counted as misplaced, %d as emitted; want 0 and 1", got.Misplaced, got.Emitted)
	}
}

// A transaction waits until its client knows each topic. It does so once per topic.
func TestNewTopics_ListsEachTopicOnce(t *testing.T) {
	t.Parallel()
	p := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}, Outputs: []string{"out", "out2"}})
	p.knownTopics = map[string]struct{}{}
	p.record = fakeRecord{topic: "in", at: time.UnixMilli(5)}
	for i, c := range []struct {
		do   func(tx *Tx)
		want []string
	}{
		{func(*Tx) {}, []string{"g-table"}},
		{func(tx *Tx) {
			tx.Emit("out", "a", nil)
			tx.Emit("out", "b", nil)
			p.forward(fakeRecord{topic: "in", key: "key", at: time.UnixMilli(5)}, 1, nil)
		}, []string{"out", "in"}},
		{func(tx *Tx) {
			tx.Emit("out", "a", nil)
			tx.EmitRetry("out2", 0, "b", nil, topics.Retry{Group: "g"})
		}, []string{"out2"}},
		{func(tx *Tx) { tx.Emit("out2", "a", nil) }, nil},
	} {
		b := p.newBatch()
		p.state.pending = b
		var tx Tx
		p.state.begin(&tx, "key", "key", time.UnixMilli(5), p)
		c.do(&tx)
		must.OK(t, p.state.end(&tx, nil))
		expect.NoDiff(t, p.newTopics(b), c.want, "batch %d has the new topics", i)
	}
}

// A key that exceeds the topic's limit together with its value makes the record a bad record. The transaction does not fail.
func TestEmit_RejectsLongKey(t *testing.T) {
	t.Parallel()
	p := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}, Outputs: []string{"out"}})
	p.record = fakeRecord{topic: "in", at: time.UnixMilli(5)}
	value := make([]byte, p.state.cfg.MaxValueBytes)
	for length, wantBad := range map[int]bool{maxNameBytes: false, maxNameBytes + 1: true} {
		var tx Tx
		p.state.begin(&tx, "key", "key", time.UnixMilli(5), p)
		tx.EmitTo("out", 0, strings.Repeat("k", length), value)
		err := p.state.end(&tx, nil)
		var bad *schemas.BadRecordError
		expect.Equal(t, errors.As(err, &bad), wantBad, "a key of %d bytes: %v is a bad record", length, err)
	}
}

// countingPartition returns a partition whose callback writes a row, counts its calls, and then calls then.
func countingPartition(t *testing.T, then func(calls int) error) (p *partition, key string, calls *int) {
	t.Helper()
	calls, key = new(int), ownersOfPartition0(1)[0]
	p = newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in", handle: func(tx *Tx, _ []byte) error {
		*calls++
		tx.Own().Put([]byte("row"), []byte("value"))
		return then(*calls)
	}}}})
	return p, key, calls
}

func TestHandle_SkipsRecordsAtOrBelowTheAppliedOffset(t *testing.T) {
	t.Parallel()
	p, key, calls := countingPartition(t, func(int) error { return nil })
	p.applied[0] = 4
	for offset := range int64(7) {
		p.handle(fakeRecord{topic: "in", key: key, offset: offset, at: time.UnixMilli(5)}, 0, nil)
	}
	if *calls != 2 || p.applied[0] != 6 || p.run.r.meter.counters().Skipped != 5 {
		t.Errorf("%d calls, applied %d, %d skipped; want 2, 6 and 5", *calls, p.applied[0], p.run.r.meter.counters().Skipped)
	}
}

func TestHandle_PanicDiscardsBatch(t *testing.T) {
	t.Parallel()
	p, key, _ := countingPartition(t, func(calls int) error {
		if calls == 2 {
			panic("bug")
		}
		return nil
	})
	p.handle(fakeRecord{topic: "in", key: key, offset: 1, at: time.UnixMilli(5)}, 0, nil)
	func() {
		defer func() { _ = recover() }() // as Goka does
		p.handle(fakeRecord{topic: "in", key: key, offset: 2, at: time.UnixMilli(5)}, 0, nil)
		t.Error("the panic did not reach Goka")
	}()
	expect.Equal(t, p.seal(), nil, "batch with writes of the record that panicked")
	p.handle(fakeRecord{topic: "in", key: key, offset: 3, at: time.UnixMilli(5)}, 0, nil)
	expect.Equal(t, p.applied[0], 1, "applied up to: no record is applied after the panic")
}

func TestHandle_ForwardsMisplacedRecord(t *testing.T) {
	t.Parallel()
	p, _, calls := countingPartition(t, func(int) error { return nil })
	key := "o0"
	for n := 0; topics.Partition(key, testPartitions) == p.id; n++ {
		key = "o" + strings.Repeat("x", n)
	}
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	headers, at := goka.Headers{tracing.Header: []byte(sender)}, time.UnixMilli(5)
	p.handle(headed{fakeRecord{topic: "in", key: key, offset: 0, at: at}, headers}, 0, []byte("value"))
	b := p.state.pending
	if *calls != 0 || b.misplaced != 1 || len(b.emits) != 1 {
		t.Fatalf("%d calls, %d misplaced, %d emitted; want one misplaced record", *calls, b.misplaced, len(b.emits))
	}
	sent := new(transactionRecords).fill(b, p.run.r.topo, p.id)[0]
	if sent.Topic != "in" || sent.Partition != topics.Partition(key, testPartitions) || string(sent.Key) != key || string(sent.Value) != "value" ||
		!sent.Timestamp.Equal(at) || string(headerOf(sent, tracing.Header)) != sender || topics.OriginTime(&sent) != schemas.MicrosOf(at) {
		t.Errorf("forwarded %+v, want the record in its key's partition", sent)
	}
}
