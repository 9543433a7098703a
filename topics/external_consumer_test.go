package topics_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// fakeExternal is an external consumer whose position the test sets.
type fakeExternal struct {
	mu      sync.Mutex
	at      map[int32]int64
	err     error
	queries int
	then    func(*fakeExternal) // called after each query, with its result fixed
}

func (s *fakeExternal) consumer() topics.ExternalConsumer {
	return topics.ExternalConsumer{Name: "copy", Topic: topics.ActionsEnriched, Reached: func(context.Context) (map[int32]int64, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queries++
		at, err := maps.Clone(s.at), s.err
		if s.then != nil {
			s.then(s)
		}
		return at, err
	}}
}

// action returns a record of a partition that originates from an event of some time ago.
func action(partition int32, ago time.Duration) *kgo.Record {
	since := schemas.MicrosOf(time.Now().Add(-ago))
	return &kgo.Record{Topic: topics.ActionsEnriched, Partition: partition, Value: []byte("x"), Headers: topics.WithOrigin(nil, since)}
}

// put sends records to their Record.Partition.
func (w *wire) put(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	out := w.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must.OK(t, out.ProduceSync(t.Context(), records...).FirstErr())
}

// ended sends a record in a transaction to the partition of user:1, and returns the partition.
func (w *wire) ended(t *testing.T, end kgo.TransactionEndTry) int32 {
	t.Helper()
	r := &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte("user:1"), Value: []byte("x")}
	w.transact(t, end, r)
	return r.Partition
}

// soon returns a context that times out when an expected result does not arrive.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// lagAfterTwoChecks waits for two checks, and returns the lag at the second; "": no lag.
func (w *wire) lagAfterTwoChecks(t *testing.T, s *fakeExternal) (state string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	checks := 0
	err := topics.AwaitExternalConsumers(ctx, w.Kafka, func(now topics.WaitState) {
		if state = now.String(); checks == 1 {
			cancel()
		}
		checks++
	}, s.consumer())
	var late *topics.WaitError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &late) || late.State.String() != state:
		t.Fatalf("got %v, want lag %s", err, state)
	}
	return state
}

// AwaitExternalConsumers returns when an external consumer has reached every committed record, even if markers and an aborted tail lie
// between its position and the end. The consumer never passes these.
func TestAwaitExternalConsumers_IgnoresMarkers(t *testing.T) {
	w := newWire(t)
	p := w.ended(t, kgo.TryCommit)
	w.ended(t, kgo.TryAbort)
	s := &fakeExternal{at: map[int32]int64{p: 0}}
	expect.Equal(t, w.lagAfterTwoChecks(t, s), "copy: 4 of actions-enriched", "one unprocessed record is a lag of four offsets")
	s.at = nil
	expect.Equal(t, w.lagAfterTwoChecks(t, s), "copy: 4 of actions-enriched", "not started")
	s.at = map[int32]int64{p: 1}
	must.OK(t, topics.AwaitExternalConsumers(soon(t), w.Kafka, nil, s.consumer())) // at the markers
}

// AwaitExternalConsumers does not wait for later records, however large the lag stays.
func TestAwaitExternalConsumers_ReturnsUnderTraffic(t *testing.T) {
	w := newWire(t)
	w.put(t, action(2, 0), action(2, 0))
	s := &fakeExternal{at: map[int32]int64{2: 1}}
	s.then = func(s *fakeExternal) {
		if s.queries > 1 {
			s.at[2] = 2
		}
	}
	out := w.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	more := func(topics.WaitState) {
		must.OK(t, out.ProduceSync(t.Context(), action(2, 0), action(3, 0)).FirstErr())
	}
	must.OK(t, topics.AwaitExternalConsumers(soon(t), w.Kafka, more, s.consumer()))
	expect.AtLeast(t, s.queries, 3, "queries, until it has the records from before the call")
}

// For its producer, a transaction that is open at the call may already be committed.
func TestAwaitExternalConsumers_WaitsForOpenTransactions(t *testing.T) {
	w := newWire(t)
	r := &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte("user:1"), Value: []byte("x")}
	tx := w.begin(t, r)
	s := &fakeExternal{at: map[int32]int64{r.Partition: 0}}
	expect.Equal(t, w.lagAfterTwoChecks(t, s), "copy: 1 of actions-enriched", "open transaction")
	must.OK(t, tx.EndTransaction(t.Context(), kgo.TryAbort))
	must.OK(t, topics.AwaitExternalConsumers(soon(t), w.Kafka, nil, s.consumer()))
}

// An external consumer that does not answer, or has read a deleted topic, is retried and named.
func TestAwaitExternalConsumers_NamesUnavailableConsumer(t *testing.T) {
	w := newWire(t)
	w.put(t, action(1, 0))
	s := &fakeExternal{err: errors.New("unavailable")}
	expect.Equal(t, w.lagAfterTwoChecks(t, s), "copy: unavailable", "unavailable")
	s.err, s.at = nil, map[int32]int64{1: 7}
	want := "copy: copy is at offset 7 of actions-enriched/1, which ends at 1"
	expect.Contains(t, w.lagAfterTwoChecks(t, s), want, "position beyond the end")
	s.err, s.at, s.queries = errors.New("unavailable"), map[int32]int64{1: 1}, 0
	s.then = func(s *fakeExternal) {
		if s.queries == 2 {
			s.err = nil
		}
	}
	var states []string
	must.OK(t, topics.AwaitExternalConsumers(soon(t), w.Kafka, func(state topics.WaitState) { states = append(states, state.String()) }, s.consumer()))
	if len(states) != 3 || states[1] != "copy: unavailable" {
		t.Errorf("states %q, want two with the error", states)
	}
}

// The oldest unprocessed record of all partitions, by the arrival of its event, shows how late an external consumer is.
func TestOldestUnprocessed(t *testing.T) {
	w := newWire(t)
	l, err := topics.NewLog(w.Kafka)
	must.OK(t, err)
	defer l.Close()
	w.put(t, action(1, 3*time.Hour), action(1, time.Hour), action(2, 2*time.Hour), action(2, 0))
	w.ended(t, kgo.TryAbort)
	for name, tt := range map[string]struct {
		at   map[int32]int64
		want time.Duration // age; negative: no unprocessed record
	}{
		"nothing begun":   {map[int32]int64{}, 3 * time.Hour},
		"one taken":       {map[int32]int64{1: 1, 2: 0}, 2 * time.Hour},
		"one stuck":       {map[int32]int64{1: 1, 2: 2}, time.Hour},
		"all but aborted": {map[int32]int64{1: 2, 2: 2}, -1},
	} {
		oldest, err := l.OldestUnprocessed(t.Context(), (&fakeExternal{at: tt.at}).consumer())
		switch ago := time.Since(oldest); {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want < 0 && !oldest.IsZero(), tt.want >= 0 && (ago < tt.want || ago > tt.want+time.Minute):
			t.Errorf("%s: got %v, want %v ago", name, oldest, tt.want)
		}
	}
	errAway := errors.New("unavailable")
	_, err = l.OldestUnprocessed(t.Context(), (&fakeExternal{err: errAway}).consumer())
	expect.Is(t, err, errAway, "an unavailable consumer")
}

// The setup's Wait returns only when its external consumers have the records that the readers have processed.
func TestSetupWait_IncludesExternalConsumers(t *testing.T) {
	w := newWire(t)
	s := &fakeExternal{}
	w.put(t, action(1, 0))
	for _, r := range topics.ReadersOf(topics.Catalogue(topics.Profile{})) {
		if slices.Contains(r.Topics, topics.ActionsEnriched) {
			group := r.Group
			if r.Each {
				group = topics.InstanceGroup(group, "1")
			}
			f := topics.FollowConfig{
				ConsumerConfig: w.consumer(group, topics.ActionsEnriched),
				Checkpoint:     func() (topics.Checkpoint, error) { return topics.Checkpoint{}, nil },
			}
			topicstest.Run(t, func(ctx context.Context) error {
				return topics.Follow(ctx, f, func(context.Context, []*kgo.Record, topics.Checkpoint) error { return nil })
			})
		}
	}
	setup := topics.Setup{Kafka: w.Kafka, ExternalConsumers: []topics.ExternalConsumer{s.consumer()}}
	s.then = func(s *fakeExternal) {
		if s.queries == 2 {
			s.at = map[int32]int64{1: 1}
		}
	}
	var states []string
	progress := func(state topics.WaitState) { states = append(states, state.String()) }
	must.OK(t, setup.Wait(soon(t), schemas.MicrosOf(time.Now()), progress))
	if s.queries != 3 || !strings.Contains(strings.Join(states, "; "), "copy: 1 of actions-enriched") {
		t.Errorf("%d queries, states %q", s.queries, states)
	}
}
