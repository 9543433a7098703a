package topics_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A small pipeline. mill turns each record of pins into one of publications and two of edges. loop sends a record of
// publications three times through fanout-loop and then to edges. sink counts the records of edges. So 1 record of pins
// results in 3 of edges.
var pipelineReaders = []topics.Reader{
	{Group: "mill", Topics: []string{topics.Pins}},
	{Group: "loop", Topics: []string{topics.Publications, topics.FanoutLoop}},
	{Group: "sink", Topics: []string{topics.Edges}},
}

type pipeline struct {
	w    *wire
	got  seen
	slow time.Duration // upper bound of the delay per poll
}

// member consumes as a group. emit returns the records derived from a record.
func (p *pipeline) member(t *testing.T, group string, inputs []string, emit func(r *kgo.Record) []*kgo.Record) {
	out := p.w.Client()
	topicstest.Run(t, func(ctx context.Context) error {
		cfg := topics.ConsumerConfig{Kafka: p.w.Kafka, Group: group, Topics: inputs, MaxPoll: 7}
		return topics.Consume(ctx, cfg, func(ctx context.Context, rs []*kgo.Record) error {
			if p.slow > 0 {
				select {
				case <-time.After(rand.N(p.slow)):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			var emitted []*kgo.Record
			for _, r := range rs {
				for _, e := range emit(r) {
					e.Key, e.Headers = r.Key, topics.WithOrigin(nil, topics.OriginTime(r))
					emitted = append(emitted, e)
				}
			}
			return out.ProduceSync(ctx, emitted...).FirstErr()
		})
	})
}

func (p *pipeline) run(t *testing.T) {
	p.member(t, "mill", []string{topics.Pins}, func(r *kgo.Record) []*kgo.Record {
		return []*kgo.Record{
			{Topic: topics.Publications, Value: r.Value},
			{Topic: topics.Edges, Value: append(r.Value, "/1"...)},
			{Topic: topics.Edges, Value: append(r.Value, "/2"...)},
		}
	})
	p.member(t, "loop", []string{topics.Publications, topics.FanoutLoop}, func(r *kgo.Record) []*kgo.Record {
		if strings.Count(string(r.Value), "~") < 3 {
			return []*kgo.Record{{Topic: topics.FanoutLoop, Value: append(r.Value, '~')}}
		}
		return []*kgo.Record{{Topic: topics.Edges, Value: r.Value}}
	})
	p.member(t, "sink", []string{topics.Edges}, func(r *kgo.Record) []*kgo.Record {
		p.got.add([]*kgo.Record{r})
		return nil
	})
}

// effects returns the number of records of edges derived from events with a prefix.
func (p *pipeline) effects(prefix string) int {
	p.got.mu.Lock()
	defer p.got.mu.Unlock()
	n := 0
	for v := range p.got.values {
		if strings.HasPrefix(v, prefix) {
			n++
		}
	}
	return n
}

func (w *wire) wait(t *testing.T, timeout time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now()), nil, pipelineReaders...)
}

var errEnoughChecks = errors.New("enough checks")

// waitChecks runs Wait for n checks with brokers that answer, and then cancels it with errEnoughChecks as the cause.
func (w *wire) waitChecks(t *testing.T, n int, readers ...topics.Reader) error {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	checks := 0
	return topics.Wait(bounded, w.Kafka, schemas.MicrosOf(time.Now()), func(s topics.WaitState) {
		if s.Err == nil {
			checks++
		}
		if checks == n {
			end(errEnoughChecks)
		}
	}, readers...)
}

// When Wait returns, all events published before have had all their effects, including loops, while newer events keep
// arriving. Wait returns nevertheless.
func TestWait_IsExactUnderTraffic(t *testing.T) {
	w := newWire(t)
	p := &pipeline{w: w, slow: 8 * time.Millisecond}
	p.run(t)
	stopTraffic := topicstest.Run(t, func(ctx context.Context) error {
		out := w.Client()
		for i := 0; ctx.Err() == nil; i++ {
			v := fmt.Sprintf("noise%d", i)
			_ = out.ProduceSync(ctx, &kgo.Record{Topic: topics.Pins, Key: []byte(v), Value: []byte(v)})
			time.Sleep(4 * time.Millisecond) // about half of the pipeline's capacity
		}
		return nil
	})
	for round := range 6 {
		prefix := fmt.Sprintf("r%d-", round)
		w.produce(topics.Pins, numbered(prefix, 20)...)
		must.OK(t, w.wait(t, time.Minute))
		expect.Equal(t, p.effects(prefix), 60, "round %d: effects when Wait returns", round)
	}
	expect.True(t, p.effects("noise") > 0, "events are published meanwhile")
	_ = stopTraffic()
}

// The caller's clock is two minutes behind the clock that stamps records.
func TestWait_SlowClock(t *testing.T) {
	w := newWire(t)
	p := &pipeline{w: w, slow: 30 * time.Millisecond}
	p.run(t)
	for round := range 3 {
		prefix := fmt.Sprintf("r%d-", round)
		w.produce(topics.Pins, numbered(prefix, 20)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now().Add(-2*time.Minute)), nil, pipelineReaders...)
		cancel()
		must.OK(t, err)
		expect.Equal(t, p.effects(prefix), 60, "round %d: effects when Wait returns", round)
	}
}

// A busy machine delays single rounds, but a slow Wait delays all of them. Therefore the best round counts.
func TestWait_ReturnsSoonAfterLastEffect(t *testing.T) {
	const soon, rounds = 300 * time.Millisecond, 5
	w := newWire(t)
	p := &pipeline{w: w}
	p.run(t)
	w.produce(topics.Pins, "warm")
	eventually.True(t, "the pipeline processes records", func() bool { return p.effects("warm") == 3 })
	best := time.Hour
	for round := 0; round < rounds && best > soon; round++ {
		best = min(best, p.delay(t, fmt.Sprintf("r%d-", round)))
	}
	expect.AtMost(t, best, soon, "time until Wait returned after the last effect, at best")
}

// delay publishes events, and returns the time from their last effect until Wait returns.
func (p *pipeline) delay(t *testing.T, prefix string) time.Duration {
	t.Helper()
	p.w.produce(topics.Pins, numbered(prefix, 100)...)
	var returned time.Time
	var err error
	var waiting sync.WaitGroup
	waiting.Go(func() { err, returned = p.w.wait(t, time.Minute), time.Now() })
	eventually.True(t, "all effects", func() bool { return p.effects(prefix) == 300 })
	last := time.Now()
	waiting.Wait()
	must.OK(t, err)
	return returned.Sub(last)
}

// mill commits a record between the two reads of a check. Wait detects
// the derived records only because it reads the ends after the committed offsets.
func TestWait_ReadsEndsAfterCommittedOffsets(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Pins, "k")
	var moved atomic.Bool
	w.Broker().ControlKey(int16(kmsg.OffsetFetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		if moved.CompareAndSwap(false, true) {
			w.Broker().SleepControl(func() {
				w.produce(topics.Publications, "k")
				w.commit(t, "mill", topics.Pins, topics.Partition("k", w.Kafka.Partitions), 1)
			})
		}
		return nil, nil, false
	})
	expect.Error(t, w.waitChecks(t, 2, pipelineReaders...), "loop: 1 of publications", "Wait")
	expect.True(t, moved.Load(), "the record is committed between the reads")
}

func TestWait_ReportsLag(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Pins, numbered("a", 10)...)
	err := w.waitChecks(t, 2, pipelineReaders...)
	must.As[*topics.WaitError](t, err)
	expect.Is(t, err, errEnoughChecks, "Wait ends after two checks")
	expect.Error(t, err, "mill: 10 of pins", "Wait")
}

// Nothing has been published, so no reader needs a committed offset.
func TestWait_EmptyTopics(t *testing.T) {
	must.OK(t, newWire(t).wait(t, time.Minute))
}

// Only markers and an aborted record follow the committed offset, and the open transaction started after the call.
func TestWait_IgnoresMarkersAndAbortedRecords(t *testing.T) {
	w := newWire(t)
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		w.transact(t, end, &kgo.Record{Topic: topics.Pins, Key: []byte("k"), Value: []byte("v")})
	}
	expect.Is(t, w.wait(t, 300*time.Millisecond), context.DeadlineExceeded, "before the committed record is processed")
	w.commit(t, "mill", topics.Pins, topics.Partition("k", w.Kafka.Partitions), 1)
	must.OK(t, w.wait(t, time.Minute))
}

// begin sends records in a transaction of a new producer, and leaves it open.
func (w *wire) begin(t *testing.T, records ...*kgo.Record) *kgo.Client {
	t.Helper()
	tx := must.Get(w.Kafka.Transactional("tx", kgo.RecordPartitioner(topics.ByOwner())))(t)
	t.Cleanup(tx.Close)
	must.OK(t, tx.BeginTransaction())
	must.OK(t, tx.ProduceSync(t.Context(), records...).FirstErr())
	return tx
}

// transact sends records in a transaction of a new producer, and ends it.
func (w *wire) transact(t *testing.T, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	tx := w.begin(t, records...)
	of := convert.All(records, func(r *kgo.Record) string { return r.Topic })
	must.OK(t, topics.EndTransaction(t.Context(), tx, end, of...))
}

// commit sets an offset for a group without members.
func (w *wire) commit(t *testing.T, group, topic string, partition int32, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, partition, at, -1)
	must.OK(t, w.Admin().CommitAllOffsets(t.Context(), group, offsets))
}

func TestWait_WaitsForOpenTransaction(t *testing.T) {
	w := newWire(t)
	tx := w.begin(t, &kgo.Record{Topic: topics.Pins, Key: []byte("k"), Value: []byte("v")})
	expect.Is(t, w.wait(t, 200*time.Millisecond), context.DeadlineExceeded, "with an open transaction")
	must.OK(t, tx.EndTransaction(t.Context(), kgo.TryAbort))
	must.OK(t, w.wait(t, time.Minute))
}

// Wait waits for a process with a global table while it runs, but not after it has left.
func TestWait_IncludesGlobalTables(t *testing.T) {
	w := newWire(t)
	table, stop := w.deletedUsers(t, "a")
	for i := range 20 {
		user := schemas.UserID(fmt.Sprintf("user:%d", i))
		w.Send(w.deleted(t, user, 1))
		must.OK(t, w.wait(t, time.Minute))
		expect.True(t, table.Has(user), "%s is in the table when Wait returns", user)
	}
	_ = stop()
	w.Send(w.deleted(t, "user:later", 1))
	must.OK(t, w.wait(t, time.Minute)) // it does not wait for a process that has left
}

// For a reader with one group per process, Wait waits for all running processes. Without any, it waits for the first to
// start.
func TestWait_IncludesEveryRunningProcess(t *testing.T) {
	w := newWire(t)
	reader := topics.Reader{Group: "shelves", Topics: []string{topics.Edges}, Each: true}
	wait := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now()), nil, reader)
	}
	w.produce(topics.Edges, "a")
	p := topics.Partition("a", w.Kafka.Partitions)
	w.commit(t, "shelves-0", topics.Edges, p, 1) // by another process that has stopped
	expect.Error(t, w.waitChecks(t, 1, reader), "shelves: 1 of edges", "without processes")
	first, second := newFakeStore(), newFakeStore()
	stop := w.follow(t, first, "1")
	must.OK(t, wait())
	expect.True(t, first.once(1), "the store of one process has the record")
	w.follow(t, second, "2")
	eventually.True(t, "the second has joined", func() bool { return second.once(1) })
	for i := range 20 {
		w.produce(topics.Edges, fmt.Sprint("b", i))
		must.OK(t, wait())
		expect.True(t, first.once(i+2) && second.once(i+2), "both stores have %d records when Wait returns", i+2)
	}
	must.OK(t, stop())
	w.produce(topics.Edges, "c")
	must.OK(t, wait())
	expect.True(t, second.once(22) && !first.once(22), "after one has stopped, Wait waits only for the other")
}

func TestWait_RetriesUnavailableBrokers(t *testing.T) {
	w := newWire(t)
	var fails int
	w.Broker().ControlKey(int16(kmsg.ListGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		if fails++; fails > 3 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp, nil, true
	})
	must.OK(t, w.wait(t, time.Minute))
	expect.True(t, fails > 3, "the faults are hit")
}

func TestReadersOf_ListsTopicsInOrderOfTheCatalogue(t *testing.T) {
	catalogue := []topics.Topic{
		{Name: "in", Readers: []string{"b", "a"}}, {Name: "table", Writers: []string{"a"}}, {Name: "out", Readers: []string{"a", topics.Features}},
	}
	want := []topics.Reader{{Group: "b", Topics: []string{"in"}}, {Group: "a", Topics: []string{"in", "out"}}, {Group: topics.Features, Topics: []string{"out"}, Each: true}}
	expect.NoDiff(t, topics.ReadersOf(catalogue), want, "readers")
}
