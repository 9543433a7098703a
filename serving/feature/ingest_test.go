package feature

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// wire is an embedded broker and registry with every topic, and a store.
type wire struct {
	*topicstest.Cluster
	publisher *topics.Publisher
	store     *EmbeddedStore
	registry  *prometheus.Registry
	metrics   *Metrics
}

func newWire(t testing.TB) *wire {
	t.Helper()
	w := &wire{Cluster: topicstest.Start(t, 2), registry: prometheus.NewRegistry(), store: openTest(t, t.TempDir(), DefaultConfig())}
	w.publisher, w.metrics = w.Publisher(), must.Get(NewMetrics(w.registry))(t)
	return w
}

// first is the instance name of the process in tests with a single sink.
const first = "127.0.0.1:1"

func (w *wire) sink(t testing.TB, store Writer, deadLetters topics.DeadLetterSender) *Sink {
	t.Helper()
	return w.sinkOf(t, first, store, deadLetters)
}

func (w *wire) sinkOf(t testing.TB, instance string, store Writer, deadLetters topics.DeadLetterSender) *Sink {
	t.Helper()
	return must.Get(NewSink(DefaultConfig(), SinkDeps{
		Kafka: w.Kafka, Streams: w.Streams, Instance: instance, Store: store, DeadLetters: deadLetters, Metrics: w.metrics, Deleted: deleted{},
		Now: func() time.Time { return now.Time() },
	}))(t)
}

func produce[T any](t testing.TB, w *wire, s topics.Stream[T], key string, recs ...*T) {
	t.Helper()
	for _, rec := range recs {
		w.Produce(s.Name, key, encoded(t, s, rec))
	}
}

func encoded[T any](t testing.TB, s topics.Stream[T], rec *T) []byte {
	t.Helper()
	return must.Get(s.Encode(rec))(t)
}

// lag returns how many records of its topics, including markers, the first process has not committed.
func (w *wire) lag(t testing.TB) int64 {
	t.Helper()
	return w.lagOf(t, first)
}

func (w *wire) lagOf(t testing.TB, instance string) int64 {
	t.Helper()
	return w.Lag(topics.InstanceGroup(topics.Features, instance), topics.ActionsEnriched, topics.ItemFeatures, topics.PinAttributes)
}

func TestSink_ActionsBecomeFeatures(t *testing.T) {
	w := newWire(t)
	sink := w.sink(t, w.store, w.publisher)
	if _, known := sink.Fresh(); known {
		t.Error("Fresh is known before any action arrived")
	}
	stop := topicstest.Run(t, sink.Run)
	produce(t, w, w.Streams.ActionsEnriched, "user:1", saves("user:1", 3, now-1e6).Actions...)
	start := now / schemas.ItemStep * schemas.ItemStep
	for n := range int64(3) { // a later record of a step replaces the earlier one
		counts := &schemas.ItemCounts{Pin: "pin:1", Start: start, Counts: map[string]int64{"save": n + 5}}
		produce(t, w, w.Streams.ItemFeatures, "pin:1", counts)
	}
	own := &schemas.PinAttributes{Pin: "pin:9", Version: 1, Facets: schemas.Facets{Author: "user:ada"}, Attributes: map[string]string{"a": "b"}, Embedding: []float32{7}}
	produce(t, w, w.Streams.PinAttributes, "pin:9", own)

	old := saves("user:1", 1, now-97*hour).Actions[0]
	produce(t, w, w.Streams.ActionsEnriched, "user:1", old)

	count := define(t, "entity: user", "aggregate: count")
	eventually.True(t, "three actions", func() bool { return one(t, w.store, "user:1", count).Value == Number(3) })
	eventually.True(t, "the last counts", func() bool {
		got, _, err := w.store.Items(t.Context(), []schemas.PinID{"pin:1"}, now, []Definition{define(t, "entity: pin", "aggregate: count")})
		return err == nil && got[0][0].Value == Number(7)
	})
	eventually.True(t, "the card", func() bool {
		got, _, err := w.store.Pins(t.Context(), []schemas.PinID{"pin:9"}, true)
		return err == nil && got["pin:9"].Author == "user:ada" && got["pin:9"].Attributes["a"] == "b" && len(got["pin:9"].Embedding) == 1
	})
	eventually.True(t, "everything is committed", func() bool { return w.lag(t) == 0 })
	lag := metricstest.Sum(t, w.registry, "smartfeed_features_lag_seconds")
	expect.Equal(t, lag, 0, "freshness in s, although one action is old: it arrived a moment ago and is stored")
	if arrived, known := sink.Fresh(); !known || time.Since(arrived) > time.Minute || time.Since(arrived) < 0 {
		t.Errorf("fresh to %v, %v, want a moment ago", arrived, known)
	}
	must.OK(t, stop())
}

func TestSink_BadRecordIsADeadLetter(t *testing.T) {
	w := newWire(t)
	good := saves("user:1", 1, now).Actions[0]
	tests := map[string]struct {
		topic, key string
		value      []byte
		reason     string
	}{
		"no frame":             {topics.ActionsEnriched, "user:1", []byte("?"), ""},
		"wrong key":            {topics.ActionsEnriched, "user:2", encoded(t, w.Streams.ActionsEnriched, good), `key "user:2": want "user:1"`},
		"bad actor":            {topics.ActionsEnriched, "x", encoded(t, w.Streams.ActionsEnriched, &schemas.EnrichedAction{ID: "1", Actor: "x", Verb: "save", Object: "pin:1"}), "x"},
		"no id, no verb":       {topics.ActionsEnriched, "user:1", encoded(t, w.Streams.ActionsEnriched, &schemas.EnrichedAction{Actor: "user:1", Object: "pin:1"}), "no verb"},
		"zero in id":           {topics.ActionsEnriched, "user:1", encoded(t, w.Streams.ActionsEnriched, &schemas.EnrichedAction{ID: "a\x00", Verb: "save", Actor: "user:1", Object: "pin:1"}), "none of them zero"},
		"off the step":         {topics.ItemFeatures, "pin:1", encoded(t, w.Streams.ItemFeatures, &schemas.ItemCounts{Pin: "pin:1", Start: 1}), "multiple"},
		"negative count":       {topics.ItemFeatures, "pin:1", encoded(t, w.Streams.ItemFeatures, &schemas.ItemCounts{Pin: "pin:1", Counts: map[string]int64{"save": -1}}), "below 0"},
		"attributes of a user": {topics.PinAttributes, "user:1", encoded(t, w.Streams.PinAttributes, &schemas.PinAttributes{Pin: "user:1"}), "pin"},
	}
	for _, tt := range tests {
		w.Produce(tt.topic, tt.key, tt.value)
	}
	produce(t, w, w.Streams.ActionsEnriched, "user:1", good)
	topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	eventually.True(t, "the good record", func() bool {
		return one(t, w.store, "user:1", define(t, "entity: user", "aggregate: count")).Value == Number(1)
	})
	deadLetters := w.DeadLetters(len(tests))
	for name, tt := range tests {
		found := false
		for _, l := range deadLetters {
			if l.Topic == tt.topic && string(l.Value) == string(tt.value) && string(l.Key) == tt.key {
				found = l.Group == topics.Features && strings.Contains(l.Reason, tt.reason)
			}
		}
		expect.True(t, found, "%s: a dead letter has the reason %q", name, tt.reason)
	}
	eventually.True(t, "everything is committed", func() bool { return w.lag(t) == 0 })
	expect.Equal(t, metricstest.Sum(t, w.registry, "smartfeed_features_dead_letters_total"), float64(len(tests)), "counted dead letters")
}

// failing is a store whose first writes fail, before or after taking effect, and whose first dead letters fail.
type failing struct {
	*EmbeddedStore
	mu          sync.Mutex
	before      int // writes that fail without effect
	after       int // writes that fail after taking effect
	deadLetters int // dead letters that fail
	hits        int
}

var errBroken = errors.New("broken")

// take decrements n and reports whether it was positive.
func (f *failing) take(n *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *n == 0 {
		return false
	}
	*n--
	f.hits++
	return true
}

func (f *failing) Write(b Batch) error {
	if f.take(&f.before) {
		return errBroken
	}
	if err := f.EmbeddedStore.Write(b); err != nil {
		return err
	}
	if f.take(&f.after) {
		return errBroken
	}
	return nil
}

// hangingStore blocks its writes until the test decides their outcome.
type hangingStore struct {
	*EmbeddedStore
	begun    chan struct{}
	outcomes chan error
}

func (h hangingStore) Write(b Batch) error {
	h.begun <- struct{}{}
	if err := <-h.outcomes; err != nil {
		return err
	}
	return h.EmbeddedStore.Write(b)
}

// Features are late while a write hangs and until a failed write succeeds, however often it is retried. Old actions
// that are already in the store do not count.
func TestSink_FreshnessWhileStoreFails(t *testing.T) {
	w := newWire(t)
	store := hangingStore{w.store, make(chan struct{}), make(chan error)}
	sink := w.sink(t, store, w.publisher)
	var passed atomic.Int64 // since now
	sink.deps.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	check := func(when string, want time.Duration) {
		t.Helper()
		got := metricstest.Sum(t, w.registry, "smartfeed_features_lag_seconds")
		expect.Between(t, got, want.Seconds(), (want + eventually.Patience).Seconds(), "lateness of %s features in seconds", when)
	}
	late := saves("user:1", 1, schemas.MicrosOf(time.Now().Add(-2*time.Hour))).Actions[0]
	produce(t, w, w.Streams.ActionsEnriched, "user:1", late)
	for hours := range 3 { // the supervisor restarts it each time
		ran := make(chan error, 1)
		go func() { ran <- sink.Run(t.Context()) }()
		<-store.begun
		check("when a write starts", time.Duration(hours)*time.Hour)
		passed.Add(int64(time.Hour))
		check("while it hangs", time.Duration(hours+1)*time.Hour)
		store.outcomes <- errBroken
		expect.Is(t, <-ran, errBroken, "Run")
		check("when it has failed", time.Duration(hours+1)*time.Hour)
	}
	topicstest.Run(t, sink.Run)
	<-store.begun
	store.outcomes <- nil
	eventually.True(t, "everything is committed", func() bool { return w.lag(t) == 0 })
	expect.Equal(t, metricstest.Sum(t, w.registry, "smartfeed_features_lag_seconds"), 0, "lag of features after the write in seconds")
}

type failingDeadLetters struct {
	*failing
	to *topics.Publisher
}

func (f failingDeadLetters) SendDeadLetter(ctx context.Context, group string, r *kgo.Record, reason string) error {
	if f.take(&f.deadLetters) {
		return errBroken
	}
	return f.to.SendDeadLetter(ctx, group, r, reason)
}

// A supervisor calls Run again after each error: nothing is lost or doubled. Data that was written before the failure
// has its offset stored and is not read again, so each round produces something new.
func TestSink_CommitsAfterWrite(t *testing.T) {
	w := newWire(t)
	f := &failing{EmbeddedStore: w.store, before: 2, after: 2, deadLetters: 2}
	sink := w.sink(t, f, failingDeadLetters{f, w.publisher})
	w.Produce(topics.ActionsEnriched, "user:1", []byte("?"))
	failed := 0
	for _, a := range saves("user:1", 6, now).Actions {
		produce(t, w, w.Streams.ActionsEnriched, "user:1", a)
		expect.Is(t, sink.Run(t.Context()), errBroken, "Run")
		failed++
		expect.AtLeast(t, w.lag(t), 1, "lag after failure %d", failed)
	}
	expect.Equal(t, f.hits, failed, "faults that were hit")
	expect.Equal(t, failed, 6, "failures of Run")
	topicstest.Run(t, sink.Run)
	eventually.True(t, "six actions", func() bool {
		return one(t, w.store, "user:1", define(t, "entity: user", "aggregate: count")).Value == Number(6)
	})
	eventually.True(t, "everything is committed", func() bool { return w.lag(t) == 0 })
	expect.Equal(t, rowsOf(t, w.store, actionTable), 6, "rows")
}

// An aborted transaction does not affect features.
func TestSink_IgnoresAbortedRecords(t *testing.T) {
	w := newWire(t)
	tx := must.Get(w.Kafka.Client(kgo.TransactionalID("test")))(t)
	defer tx.Close()
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		must.OK(t, tx.BeginTransaction())
		a := &schemas.EnrichedAction{ID: fmt.Sprint(i), Actor: "user:1", Verb: "save", Object: schemas.ID(fmt.Sprint("pin:", i)), Timestamp: now}
		r := &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte("user:1"), Value: encoded(t, w.Streams.ActionsEnriched, a)}
		must.OK(t, tx.ProduceSync(t.Context(), r).FirstErr())
		must.OK(t, topics.EndTransaction(t.Context(), tx, end, r.Topic))
	}
	topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	eventually.True(t, "everything is committed", func() bool { return w.lag(t) == 0 })
	want := Last{{"pin:1", "save", nowMS.Time()}}
	same[Value](t, "newest action", want, one(t, w.store, "user:1", define(t, "entity: user", "aggregate: last")).Value)
}

// holdsAll checks that a store has the saves of ten users, each once, and a pin.
func holdsAll(t *testing.T, who string, store *EmbeddedStore) {
	t.Helper()
	expect.Equal(t, rowsOf(t, store, actionTable), 10, "%s: actions of all ten users", who)
	got, _, err := store.Pins(t.Context(), []schemas.PinID{"pin:9"}, false)
	if err != nil || got["pin:9"].Author != "user:ada" {
		t.Errorf("%s: the pin is %v, %v", who, got, err)
	}
}

// Each of two processes has all data in its store. A process that lost its directory fills its store again. One that
// kept it resumes at its stored offsets, although the brokers have lost the committed ones.
func TestSink_EveryProcessHasAllFeatures(t *testing.T) {
	w := newWire(t)
	for i := range 10 {
		user := schemas.UserID(fmt.Sprint("user:", i))
		produce(t, w, w.Streams.ActionsEnriched, string(user), saves(user, 1, now).Actions[0])
	}
	w.Produce(topics.ActionsEnriched, "user:1", []byte("?"))
	produce(t, w, w.Streams.PinAttributes, "pin:9", &schemas.PinAttributes{Pin: "pin:9", Version: 1, Facets: schemas.Facets{Author: "user:ada"}})
	const second = "127.0.0.1:2"
	dir := t.TempDir()
	other := openTest(t, dir, DefaultConfig())
	topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	stop := topicstest.Run(t, w.sinkOf(t, second, other, w.publisher).Run)
	eventually.True(t, "both have everything", func() bool { return w.lag(t) == 0 && w.lagOf(t, second) == 0 })
	holdsAll(t, "the first", w.store)
	holdsAll(t, "the second", other)
	for _, l := range w.DeadLetters(2) {
		expect.Equal(t, l.Group, topics.Features, "group of the dead letter: that of the reader, so that every process reads its retry")
	}
	must.OK(t, errors.Join(stop(), other.Close()))

	must.Get(w.Admin().DeleteGroups(t.Context(), topics.InstanceGroup(topics.Features, second)))(t) // and the committed offsets
	kept := &counting{EmbeddedStore: openTest(t, dir, DefaultConfig())}
	stop = topicstest.Run(t, w.sinkOf(t, second, kept, w.publisher).Run)
	eventually.True(t, "the second has joined again", func() bool { return w.lagOf(t, second) == 0 })
	must.OK(t, stop())
	expect.Equal(t, kept.records, 0, "records written again, although it resumes at the checkpoint of its store")
	must.OK(t, errors.Join(kept.Close(), os.RemoveAll(dir)))

	empty := openTest(t, dir, DefaultConfig())
	topicstest.Run(t, w.sinkOf(t, second, empty, w.publisher).Run)
	eventually.True(t, "the second is filled again", func() bool { return rowsOf(t, empty, actionTable) == 10 && w.lagOf(t, second) == 0 })
	holdsAll(t, "the second, with an empty store", empty)
}

// counting counts the written records.
type counting struct {
	*EmbeddedStore
	records int
}

func (c *counting) Write(b Batch) error {
	c.records += len(b.Actions) + len(b.Counts) + len(b.Pins)
	return c.EmbeddedStore.Write(b)
}

// A recreated topic starts at offsets that the store has already applied. It is read from the start.
func TestSink_ReadsRecreatedTopicFromStart(t *testing.T) {
	w := newWire(t)
	for range 5 {
		produce(t, w, w.Streams.ActionsEnriched, "user:key", saves("user:key", 1, now).Actions[0])
	}
	stop := topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	eventually.True(t, "the first topic is applied", func() bool { return w.lag(t) == 0 })
	must.OK(t, stop())
	must.Get(w.Admin().DeleteTopics(t.Context(), topics.ActionsEnriched))(t)
	w.Apply()
	second := &schemas.EnrichedAction{ID: "other", Actor: "user:key", Verb: "save", Object: "pin:1", Timestamp: now}
	for range 7 { // more than before, so that the old offset exists in the new topic
		produce(t, w, w.Streams.ActionsEnriched, "user:key", second)
		second.ID += "x"
	}
	topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	eventually.True(t, "the second topic is applied", func() bool { return rowsOf(t, w.store, actionTable) == 1+7 })
}

func TestStore_Checkpoint(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, DefaultConfig())
	want := topics.Checkpoint{}
	for topic, n := range map[string]int32{"a": 2, "a-b": 1, topics.PinAttributes: 3} {
		for p := range n {
			want.Set(topic, p, topics.PartitionCheckpoint{Topic: kadm.TopicID{byte(len(topic))}, Next: int64(p) << 33})
		}
	}
	mustWrite(t, s, Batch{Checkpoint: topics.Checkpoint{"a": {0: {Next: 1}}}})
	mustWrite(t, s, Batch{Checkpoint: want})
	must.OK(t, errors.Join(s.Sweep(deleted{}.Has), s.Close()))
	got := must.Get(openTest(t, dir, DefaultConfig()).Checkpoint())(t)
	expect.NoDiff(t, got, want, "marks")
	expect.Is(t, expect.ErrorOf(s.Checkpoint()), ErrClosed, "closed")
}

func TestSink_RunStopsAllGoroutines(t *testing.T) {
	w := newWire(t)
	ignore := goleak.IgnoreCurrent()
	stop := topicstest.Run(t, w.sink(t, w.store, w.publisher).Run)
	eventually.True(t, "the group exists", func() bool {
		admin := must.Get(w.Kafka.Admin())(t)
		defer admin.Close()
		group := topics.InstanceGroup(topics.Features, first)
		groups, err := admin.DescribeGroups(t.Context(), group)
		return err == nil && groups[group].State == "Stable"
	})
	must.OK(t, stop())
	goleak.VerifyNone(t, ignore, goleak.IgnoreTopFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"))
}
