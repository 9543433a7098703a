package topics_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// fakeStore is a store of values and its checkpoint.
type fakeStore struct {
	mu     sync.Mutex
	values map[string]int
	marks  topics.Checkpoint
	fail   error // returned by the next write
}

func newFakeStore() *fakeStore {
	return &fakeStore{values: map[string]int{}, marks: topics.Checkpoint{topics.Edges: {}}}
}

func (s *fakeStore) put(_ context.Context, records []*kgo.Record, to topics.Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail; err != nil {
		s.fail = nil
		return err
	}
	for _, r := range records {
		s.values[string(r.Value)]++
	}
	maps.Copy(s.marks[topics.Edges], to[topics.Edges])
	return nil
}

func (s *fakeStore) filled() (topics.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return topics.Checkpoint{topics.Edges: maps.Clone(s.marks[topics.Edges])}, nil
}

// once reports whether the store has n values, each once.
func (s *fakeStore) once(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.values {
		if times != 1 {
			return false
		}
	}
	return len(s.values) == n
}

// has reports whether the store has each of the values, once.
func (s *fakeStore) has(values ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(values, func(v string) bool { return s.values[v] != 1 })
}

// next returns the sum of the offsets in the checkpoint.
func (s *fakeStore) next() (sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mark := range s.marks[topics.Edges] {
		sum += mark.Next
	}
	return sum
}

func (w *wire) following(s *fakeStore, instance string) topics.FollowConfig {
	cfg := w.consumer(topics.InstanceGroup("shelves", instance), topics.Edges)
	cfg.Reader = "shelves"
	return topics.FollowConfig{ConsumerConfig: cfg, Checkpoint: s.filled}
}

func (w *wire) follow(t *testing.T, s *fakeStore, instance string) (stop func() error) {
	t.Helper()
	return topicstest.Run(t, func(ctx context.Context) error { return topics.Follow(ctx, w.following(s, instance), s.put) })
}

// Two processes each get every record once, and their checkpoints advance beyond the markers. A lost store is filled again, whatever
// offsets are committed under its name.
func TestFollow_FillsEveryStore(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 100)...)
	w.transact(t, kgo.TryAbort, &kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte("never")})
	w.transact(t, kgo.TryCommit, &kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte("k")})
	first, second := newFakeStore(), newFakeStore()
	stop := w.follow(t, first, "1")
	w.follow(t, second, "2")
	eventually.True(t, "both have all records", func() bool { return first.once(101) && second.once(101) })
	eventually.True(t, "all offsets are committed", func() bool { return w.Committed("shelves-1", topics.Edges) == w.End(topics.Edges) })
	must.OK(t, stop())

	w.produce(topics.Edges, "late")
	stop = w.follow(t, first, "1")
	eventually.True(t, "records from while it was stopped", func() bool { return first.once(102) && second.once(102) })
	_ = stop()

	lost := newFakeStore()
	f := w.following(lost, "1")
	joined := int64(-1)
	f.Joined = func() { joined = w.Committed("shelves-1", topics.Edges) }
	stop = topicstest.Run(t, func(ctx context.Context) error { return topics.Follow(ctx, f, lost.put) })
	eventually.True(t, "the store is filled again", func() bool { return lost.once(102) })
	_ = stop()
	expect.Equal(t, joined, 0, "offsets committed after joining: those of the store")
}

// Records whose write failed are delivered again, and their offsets are not committed.
func TestFollow_ResumesAfterFailure(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 10)...)
	s, errBroken := newFakeStore(), errors.New("broken")
	s.fail = errBroken
	expect.Is(t, topics.Follow(t.Context(), w.following(s, "1"), s.put), errBroken, "Follow")
	expect.Equal(t, [2]int64{w.Committed("shelves-1", topics.Edges), s.next()}, [2]int64{}, "offsets committed and in the checkpoint")
	w.follow(t, s, "1")
	eventually.True(t, "all records are stored", func() bool { return s.once(10) })
}

func TestFollow_DetectsChangedTopic(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *wire, *fakeStore)
		want   string
	}{
		"recreated": {func(t *testing.T, w *wire, _ *fakeStore) {
			w.recreate(t, topics.Edges)
			w.produce(topics.Edges, numbered("b", 50)...)
		}, "topic edges was recreated since its records were applied"},
		"cut short": {func(t *testing.T, w *wire, s *fakeStore) {
			w.produce(topics.Edges, numbered("b", 50)...)
			mark := s.marks[topics.Edges][0]
			mark.Next += 1000
			s.marks[topics.Edges][0] = mark
		}, "edges/0 ends at "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.produce(topics.Edges, numbered("a", 50)...)
			s := newFakeStore()
			stop := w.follow(t, s, "1")
			eventually.True(t, "all records are stored", func() bool { return s.once(50) && s.next() == 50 })
			_ = stop()
			c.change(t, w, s)

			wantChanged(t, topics.Follow(t.Context(), w.following(s, "1"), s.put), c.want)
			f := w.following(s, "1")
			f.ReadChanged = true
			topicstest.Run(t, func(ctx context.Context) error { return topics.Follow(ctx, f, s.put) })
			eventually.True(t, "the topic is read from its oldest record", func() bool { return s.has(numbered("b", 50)...) })
		})
	}
}

// A retried record is delivered to every process of the reader that could not process it, and to no other reader.
func TestFollow_GetsRetriesOfItsReader(t *testing.T) {
	w := newWire(t)
	retried := func(value, group string) *kgo.Record {
		header := kgo.RecordHeader{Key: topics.RetryHeader, Value: topics.Retry{Group: group, Attempt: 1}.Value()}
		return &kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte(value), Headers: []kgo.RecordHeader{header}}
	}
	w.Send(retried("ours", "shelves"), retried("theirs", "feeds"), retried("one's", "shelves-1"), &kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte("last")})
	first, second := newFakeStore(), newFakeStore()
	w.follow(t, first, "1")
	w.follow(t, second, "2")
	eventually.True(t, "all records are read", func() bool { return first.next() == 4 && second.next() == 4 })
	want := map[string]int{"ours": 1, "last": 1}
	for _, s := range []*fakeStore{first, second} {
		expect.NoDiff(t, s.values, want, "values")
	}
}

func TestParseCheckpoint_RoundTrip(t *testing.T) {
	for _, want := range []topics.PartitionCheckpoint{{}, {Next: 1<<40 + 7}, {Topic: kadm.TopicID{1, 15: 9}, Next: 3}} {
		encoded := want.Bytes()
		expect.NoDiff(t, must.Get(topics.ParseCheckpoint(encoded))(t), want, "checkpoint")
		for _, bad := range [][]byte{nil, encoded[:8], encoded[:len(encoded)-1], append(encoded, 'x')} {
			expect.Fails(t, expect.ErrorOf(topics.ParseCheckpoint(bad)), "%d bytes", len(bad))
		}
	}
}
