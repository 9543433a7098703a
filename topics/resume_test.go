package topics_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// sendNumbers sends records with the numbers as values into one partition, and returns the partition.
func (w *wire) sendNumbers(t *testing.T, topic string, from, to int) int32 {
	t.Helper()
	for i := from; i < to; i++ {
		w.Send(&kgo.Record{Topic: topic, Key: []byte("k"), Value: fmt.Append(nil, i)})
	}
	return topics.Partition("k", w.Kafka.Partitions)
}

// recreate deletes a topic, creates it again, and waits until it accepts records.
func (w *wire) recreate(t *testing.T, topic string) {
	t.Helper()
	must.Get(w.Admin().DeleteTopics(t.Context(), topic))(t)
	must.Get(topics.Apply(t.Context(), w.Kafka, topics.Catalogue(topics.Profile{Embedded: true})))(t)
}

// wantChanged checks that err is a *topics.ChangedTopicError that contains a text.
func wantChanged(t *testing.T, err error, want string) {
	t.Helper()
	expect.True(t, must.As[*topics.ChangedTopicError](t, err).Fatal(), "the error is fatal")
	expect.Error(t, err, want, "resume")
}

// A group must not skip records that its topic lost.
func TestConsume_FailsWhenRecordsAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *wire, int32)
		want   string
	}{
		"retention": {func(t *testing.T, w *wire, p int32) {
			w.sendNumbers(t, topics.Edges, 5, 15)
			w.DeleteBefore(topics.Edges, p, 10)
		}, "starts at offset 10, but is applied only up to 4: retention removed records"},
		"truncated": {func(t *testing.T, w *wire, p int32) { w.commit(t, "g", topics.Edges, p, 1000) }, "ends at 5, but is applied up to 999"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			p := w.sendNumbers(t, topics.Edges, 0, 5)
			var got seen
			stop := w.consume(t, &got)
			eventually.True(t, "the offsets are committed", func() bool { return w.Committed("g", topics.Edges) == 5 })
			_ = stop()
			c.change(t, w, p)
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
			defer cancel()
			wantChanged(t, topics.Consume(ctx, w.consumer("g", topics.Edges), got.handle), c.want)
			expect.Equal(t, got.len(), 5, "records delivered: the first 5")
		})
	}
}

// No record of a recreated topic is skipped, whatever offsets were committed on the previous topic.
func TestConsume_ReadsARecreatedTopicFromItsStart(t *testing.T) {
	w := newWire(t)
	p := w.sendNumbers(t, topics.Edges, 0, 5)
	w.commit(t, "g", topics.Edges, p, 5)
	w.recreate(t, topics.Edges)
	w.sendNumbers(t, topics.Edges, 5, 15)
	var got seen
	w.consume(t, &got)
	eventually.True(t, "all of the new topic", func() bool { return got.len() == 10 })
}

// Retention may remove committed records without a loss.
func TestConsume_ContinuesWhereRetentionEnds(t *testing.T) {
	w := newWire(t)
	p := w.sendNumbers(t, topics.Edges, 0, 5)
	w.commit(t, "g", topics.Edges, p, 3)
	w.DeleteBefore(topics.Edges, p, 3)
	var got seen
	w.consume(t, &got)
	eventually.True(t, "the rest", func() bool { return got.len() == 2 })
}

// A running client must not skip removed records either.
func TestClient_DoesNotResetOffsets(t *testing.T) {
	w := newWire(t)
	p := w.sendNumbers(t, topics.Edges, 0, 5)
	w.DeleteBefore(topics.Edges, p, 3)
	client := w.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topics.Edges: {p: kgo.NewOffset().At(1)}}))
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	fetches := client.PollFetches(ctx)
	expect.Is(t, fetches.Err(), kerr.OffsetOutOfRange, "a poll with %d records", fetches.NumRecords())
}

// A store with idempotent writes can read a changed topic again, but a gap is a loss for any store.
func TestFollow_FailsAtARetentionGap(t *testing.T) {
	w := newWire(t)
	p := w.sendNumbers(t, topics.Edges, 0, 5)
	s := newFakeStore()
	stop := w.follow(t, s, "1")
	eventually.True(t, "all records are stored", func() bool { return s.once(5) && s.next() == 5 })
	_ = stop()
	w.sendNumbers(t, topics.Edges, 5, 15)
	w.DeleteBefore(topics.Edges, p, 10)
	for _, readChanged := range []bool{false, true} {
		f := w.following(s, "1")
		f.ReadChanged = readChanged
		wantChanged(t, topics.Follow(t.Context(), f, s.put), "retention removed records before they were applied")
	}
	expect.True(t, s.once(5), "the store has the first five records: %v", s.values)
}

// Markers at the end of a partition are not records. A checkpoint before them would count as a gap later.
func TestFollow_CheckpointPassesMarkers(t *testing.T) {
	w := newWire(t)
	s := newFakeStore()
	w.follow(t, s, "1")
	w.produce(topics.Edges, "a")
	eventually.True(t, "the record", func() bool { return s.once(1) })
	w.transact(t, kgo.TryAbort, &kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte("never")})
	eventually.True(t, "the end", func() bool { return s.next() == w.End(topics.Edges) })
}

// A process that missed records of a global table has keys that were deleted.
func TestGlobalTable_FailsWhenRecordsAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *wire, int32)
		want   string
	}{
		"retention": {func(t *testing.T, w *wire, p int32) { w.DeleteBefore(topics.UsersDeleted, p, 3) }, "retention removed records"},
		"recreated": {func(t *testing.T, w *wire, _ int32) { w.recreate(t, topics.UsersDeleted) }, "was recreated"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.Send(w.deleted(t, "user:a", 1))
			table, stop := w.deletedUsers(t, "a")
			_ = stop()
			for i := range 3 {
				w.Send(w.deleted(t, "user:a", schemas.Micros(2+i)))
			}
			c.change(t, w, topics.Partition("user:a", w.Kafka.Partitions))
			err := table.Run(t.Context())
			wantChanged(t, err, c.want)
			wantChanged(t, err, "restart the process")
		})
	}
}
