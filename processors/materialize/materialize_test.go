package materialize_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/materialize"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is an embedded broker with every topic, and a producer.
type wire struct{ *topicstest.Cluster }

func newWire(t *testing.T) *wire {
	t.Helper()
	return &wire{topicstest.Start(t, 2)}
}

// lag returns the lag of a group in records, over all its topics.
func (w *wire) lag(group string) int64 {
	return w.Lag(group, topics.FeedEntries, topics.Edges, topics.Publications, topics.PinCards, topics.UsersDeleted)
}

func produce[T any](t *testing.T, w *wire, s topics.Stream[T], key string, rec T) {
	t.Helper()
	value := must.Get(s.Encode(&rec))(t)
	w.Produce(s.Name, key, value)
}

func (w *wire) sink(t *testing.T, cfg materialize.Config, store materialize.Store) *materialize.Sink {
	t.Helper()
	return w.named(t, "", cfg, store, prometheus.NewRegistry())
}

func (w *wire) named(t *testing.T, name string, cfg materialize.Config, store materialize.Store, metrics prometheus.Registerer) *materialize.Sink {
	t.Helper()
	s := must.Get(materialize.New(cfg, materialize.Env{
		Kafka: w.Kafka, Streams: w.Streams, Name: name, Store: store, Metrics: metrics, Deleted: deletedtest.Of(),
	}))(t)
	return s
}

// await returns when a group has committed all offsets.
func (w *wire) await(t *testing.T, group string) {
	t.Helper()
	eventually.True(t, "all offsets committed", func() bool { return w.lag(group) == 0 })
}

// fill runs a sink until the test ends or stop is called, and returns when its group has committed all offsets.
func (w *wire) fill(t *testing.T, group string, s *materialize.Sink) (stop func() error) {
	t.Helper()
	stop = topicstest.Run(t, s.Run)
	w.await(t, group)
	return stop
}

func openStore(t *testing.T) *feedstore.Store {
	t.Helper()
	s := must.Get(feedstore.Open(t.TempDir(), feedstore.DefaultConfig(), slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	return s
}

func version(author schemas.UserID) schemas.PinVersion {
	return schemas.PinVersion{Pin: "pin:1", Version: 7, PinContent: schemas.PinContent{Created: 5, Facets: schemas.Facets{Author: author, Interests: []schemas.InterestID{"interest:x"}}}, Quality: 1}
}

func TestSink_WritesEveryTopic(t *testing.T) {
	w, store := newWire(t), openStore(t)
	visit := &schemas.FeedEntries{User: "user:1", Time: 9, First: 1, Items: []schemas.ServedItem{
		{Pin: "pin:1", Source: schemas.Related, Facets: version("user:2").Facets, RankScore: 0.5, Created: 5},
		{Pin: "pin:2", Source: schemas.Following, RankScore: 0.7, Created: 6},
	}}
	edge := schemas.Edge{User: "user:1", Other: "board:3", Kind: schemas.FollowEdge, Live: true, Time: 4}
	card := schemas.Card{PinVersion: version("user:2"), Title: "t", Link: "https://l"}
	produce(t, w, w.Streams.FeedEntries, "user:1", *visit)
	produce(t, w, w.Streams.Edges, "user:1", edge)
	produce(t, w, w.Streams.PinCards, "pin:1", card)
	produce(t, w, w.Streams.Publications, "user:2", schemas.Publication{Followee: "user:2", PinVersion: version("user:2")})
	produce(t, w, w.Streams.UsersDeleted, "user:4", schemas.DeletedUser{User: "user:4", Time: 3})

	must.OK(t, w.fill(t, "materialize", w.sink(t, materialize.DefaultConfig(), store))())

	ctx := t.Context()
	entries, _, err := store.Page(ctx, "user:1", math.MaxInt64, 10)
	same(t, "entries", entries, []schemas.FeedEntry{visit.At(2), visit.At(1)}, err)
	edges, err := store.Edges(ctx, "user:1", []schemas.ID{"board:3"})
	same(t, "edges", edges, []schemas.Edge{edge}, err)
	cards, err := store.Cards(ctx, []schemas.PinID{"pin:1"})
	same(t, "cards", cards, map[schemas.PinID]schemas.Card{"pin:1": card}, err)
	list, _, err := store.List(ctx, "user:2", "", 10)
	same(t, "list", list, []schemas.PinVersion{version("user:2")}, err)
	deletedUsers, err := store.DeletedUsers(ctx, []schemas.UserID{"user:4"})
	same(t, "deleted_users", deletedUsers, map[schemas.UserID]bool{"user:4": true}, err)
}

func same(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	expect.Error(t, err, "", "%s", what)
	expect.NoDiff(t, got, want, "%s", what)
}

// brokenStore fails its first writes.
type brokenStore struct {
	*feedstore.Store
	refusals int
	refused  int
}

var errUnavailable = errors.New("store is unavailable")

func (b *brokenStore) Write(ctx context.Context, batch materialize.Batch) error {
	if b.refused < b.refusals {
		b.refused++
		return errUnavailable
	}
	return b.Store.Write(ctx, batch)
}

func TestSink_RetriesUnavailableStore(t *testing.T) {
	w := newWire(t)
	store := &brokenStore{Store: openStore(t), refusals: 2}
	for p := int64(1); p <= 20; p++ {
		produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: p, Items: []schemas.ServedItem{{}}})
	}
	sink := w.sink(t, materialize.DefaultConfig(), store)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit())
	defer cancel()
	for range 2 {
		expect.Is(t, sink.Run(ctx), errUnavailable, "Run with an unavailable store")
		expect.Equal(t, w.lag("materialize"), 20, "lag after a failed write: no offset is committed without its effect")
	}
	must.OK(t, w.fill(t, "materialize", sink)())
	expect.Equal(t, store.refused, 2, "hits of the fault")
	got, _, err := store.Page(t.Context(), "user:1", math.MaxInt64, 100)
	if len(got) != 20 || err != nil {
		t.Errorf("got %d entries, %v, want 20", len(got), err)
	}
}

// hangingStore blocks its writes until the test releases them.
type hangingStore struct {
	*feedstore.Store
	begun    chan struct{}
	outcomes chan error
}

func (h *hangingStore) Write(ctx context.Context, batch materialize.Batch) error {
	h.begun <- struct{}{}
	select {
	case err := <-h.outcomes:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return h.Store.Write(ctx, batch)
}

// A store that hangs or fails has a lag. The lag is 0 after the store has caught up.
func TestSink_ReportsLagOfUnavailableStore(t *testing.T) {
	w := newWire(t)
	store := &hangingStore{Store: openStore(t), begun: make(chan struct{}, 10), outcomes: make(chan error)}
	value := must.Get(w.Streams.FeedEntries.Encode(&schemas.FeedEntries{User: "user:1", First: 1, Items: []schemas.ServedItem{{}}}))(t)
	old := &kgo.Record{Topic: topics.FeedEntries, Key: []byte("user:1"), Value: value, Timestamp: time.Now().Add(-time.Hour)}
	client, err := w.Kafka.Client(kgo.RecordDeliveryTimeout(24 * time.Hour)) // the delivery timeout starts with the timestamp of the record
	must.OK(t, err)
	defer client.Close()
	must.OK(t, client.ProduceSync(t.Context(), old).FirstErr())
	reg := prometheus.NewRegistry()
	sink := w.named(t, "", materialize.DefaultConfig(), store, reg)
	expectLag := func(when string, want time.Duration) {
		t.Helper()
		lag := metricstest.Sum(t, reg, "smartfeed_materialize_lag_seconds")
		expect.Between(t, lag, want.Seconds(), want.Seconds()+600, "%s: lag in seconds", when)
	}
	expectLag("before Run", 0)
	ran := make(chan error, 1)
	go func() { ran <- sink.Run(t.Context()) }()
	<-store.begun
	expectLag("while a write hangs", time.Hour)
	store.outcomes <- errUnavailable
	expect.Is(t, <-ran, errUnavailable, "Run with an unavailable store")
	expectLag("after the failed write", time.Hour)
	stop := topicstest.Run(t, sink.Run)
	<-store.begun
	expectLag("while the write is retried", time.Hour)
	store.outcomes <- nil
	w.await(t, "materialize")
	expectLag("after the write", 0)
	must.OK(t, stop())
	expectLag("after Run", 0)
}

// A store that lost its rows is not filled by a group that has already processed the records, until the group is reset.
func TestRefill_RestoresLostRows(t *testing.T) {
	w := newWire(t)
	const entries, group = 20, "materialize-standby"
	for p := int64(1); p <= entries; p++ {
		produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: p, Items: []schemas.ServedItem{{}}})
	}
	edge := schemas.Edge{User: "user:1", Other: "board:3", Kind: schemas.FollowEdge, Live: true, Time: 4}
	produce(t, w, w.Streams.Edges, "user:1", edge)
	fill := func(store materialize.Store) (stop func() error) {
		t.Helper()
		return w.fill(t, group, w.named(t, "standby", materialize.DefaultConfig(), store, prometheus.NewRegistry()))
	}
	count := func(store *feedstore.Store) int {
		t.Helper()
		got, _, err := store.Page(t.Context(), "user:1", math.MaxInt64, 100)
		must.OK(t, err)
		return len(got)
	}
	stop := fill(openStore(t))
	working := must.As[*ops.MembersError](t, expect.ErrorOf(ops.Refill(t.Context(), w.Kafka, "standby")))
	expect.Equal(t, working.Group, group, "group that prevents Refill while the sink runs")
	expect.Equal(t, working.Members, 1, "members of the group")
	expect.Equal(t, w.lag(group), 0, "lag after a refusal")
	must.OK(t, stop())

	empty := openStore(t)
	must.OK(t, fill(empty)())
	must.Equal(t, count(empty), 0, "entries in an empty store")
	done, err := ops.Refill(t.Context(), w.Kafka, "standby")
	want := ops.Refilled{Group: group, Records: entries + 1, Again: entries + 1}
	same(t, "refilled group", done, want, err)
	must.OK(t, fill(empty)())
	expect.Equal(t, count(empty), entries, "entries after the refill")
	edges, err := empty.Edges(t.Context(), "user:1", []schemas.ID{"board:3"})
	same(t, "edges", edges, []schemas.Edge{edge}, err)
	done, err = ops.Refill(t.Context(), w.Kafka, "") // a group that never existed
	same(t, "refill of a new store", done, ops.Refilled{Group: "materialize", Records: entries + 1}, err)
}

// If topics lose records before they are written, the store lacks blocks and deletions. The sink stops with an error that
// names the command to run.
func TestSink_StopsAtARetentionGap(t *testing.T) {
	w := newWire(t)
	edge := schemas.Edge{User: "user:1", Other: "board:3", Kind: schemas.BlockEdge, Live: true, Time: 4}
	produce(t, w, w.Streams.Edges, "user:1", edge)
	sink := w.named(t, "standby", materialize.DefaultConfig(), openStore(t), prometheus.NewRegistry())
	must.OK(t, w.fill(t, "materialize-standby", sink)())
	for range 2 {
		produce(t, w, w.Streams.Edges, "user:1", edge)
	}
	w.DeleteBefore(topics.Edges, topics.Partition("user:1", w.Kafka.Partitions), 2)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	err := sink.Run(ctx)
	must.As[*topics.ChangedTopicError](t, err)
	expect.Error(t, err, `run "smartfeed feed-store refill --store standby"`, "Run")
	must.Get(ops.Refill(t.Context(), w.Kafka, "standby"))(t)
	must.OK(t, topicstest.Run(t, sink.Run)())
}

// sizedStore records the maximum number of entries in one write.
type sizedStore struct {
	*feedstore.Store
	largest int
}

func (s *sizedStore) Write(ctx context.Context, batch materialize.Batch) error {
	s.largest = max(s.largest, len(batch.Entries))
	return s.Store.Write(ctx, batch)
}

// Batches of visits with many entries have the same bound as batches of visits with one.
func TestSink_BoundsEntriesPerWrite(t *testing.T) {
	w, store := newWire(t), &sizedStore{Store: openStore(t)}
	const visits, shown = 4, 25
	for n := range int64(visits) {
		visit := schemas.FeedEntries{User: "user:1", First: 1 + shown*n, Items: make([]schemas.ServedItem, shown)}
		produce(t, w, w.Streams.FeedEntries, "user:1", visit)
	}
	cfg := materialize.DefaultConfig()
	cfg.MaxBatchRecords = 10
	must.OK(t, w.fill(t, "materialize", w.sink(t, cfg, store))())
	got, _, err := store.Page(t.Context(), "user:1", math.MaxInt64, 1000)
	if len(got) != visits*shown || err != nil || store.largest != cfg.MaxBatchRecords {
		t.Errorf("%d entries, %v, %d in one write; want %d, at most %d in one write", len(got), err, store.largest, visits*shown, cfg.MaxBatchRecords)
	}
}

func TestSink_SendsBadRecordsToDeadLetters(t *testing.T) {
	w, store := newWire(t), openStore(t)
	good := schemas.FeedEntries{User: "user:1", First: 1, Items: []schemas.ServedItem{{}}}
	framed := must.Get(w.Streams.FeedEntries.Encode(&good))(t)
	w.Produce(topics.FeedEntries, "user:1", []byte("malformed"))
	w.Produce(topics.FeedEntries, "user:1", []byte(nil))
	w.Produce(topics.FeedEntries, "user:1", framed[:len(framed)-1])
	w.Produce(topics.FeedEntries, "user:2", framed)
	produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", Items: good.Items})
	produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: 1})
	produce(t, w, w.Streams.FeedEntries, "board:1", schemas.FeedEntries{User: "board:1", First: 1, Items: good.Items})
	produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: 1,
		Items: []schemas.ServedItem{{Pin: "pin:", RankScore: schemas.RankScore(math.Inf(1))}}})
	produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: 5,
		Items: []schemas.ServedItem{{Pin: "pin:1"}, {Pin: "pin:2"}, {Pin: "nothing"}}})
	produce(t, w, w.Streams.FeedEntries, "user:1", schemas.FeedEntries{User: "user:1", First: math.MaxInt64, Items: []schemas.ServedItem{{}}})
	produce(t, w, w.Streams.Edges, "user:1", schemas.Edge{User: "user:1", Other: "pin:1", Kind: "likes"})
	produce(t, w, w.Streams.PinCards, "x", schemas.Card{PinVersion: schemas.PinVersion{Pin: "x"}})
	produce(t, w, w.Streams.Publications, "pin:1", schemas.Publication{Followee: "pin:1", PinVersion: version("user:1")})
	produce(t, w, w.Streams.UsersDeleted, "pin:1", schemas.DeletedUser{User: "pin:1"})
	produce(t, w, w.Streams.FeedEntries, "user:1", good)

	sink := w.named(t, "standby", materialize.DefaultConfig(), store, prometheus.NewRegistry())
	must.OK(t, w.fill(t, "materialize-standby", sink)())

	got, _, err := store.Page(t.Context(), "user:1", math.MaxInt64, 10)
	same(t, "the good entry", got, []schemas.FeedEntry{good.At(1)}, err)
	deadLetters := w.DeadLetters(14)
	for _, l := range deadLetters {
		expect.True(t, l.Group == "materialize-standby" && l.Reason != "", "dead letter %+v has group and reason", l)
	}
	if !slices.ContainsFunc(deadLetters, func(l schemas.DeadLetter) bool { return string(l.Value) == "malformed" }) {
		t.Error("no dead letter has the bytes of the bad record")
	}
}
