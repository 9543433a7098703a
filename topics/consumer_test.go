package topics_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// seen counts values.
type seen struct {
	mu     sync.Mutex
	values map[string]int
}

func (s *seen) add(records []*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]int{}
	}
	for _, r := range records {
		s.values[string(r.Value)]++
	}
}

func (s *seen) handle(_ context.Context, records []*kgo.Record) error {
	s.add(records)
	return nil
}

func (s *seen) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values)
}

func numbered(prefix string, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return values
}

func (w *wire) consumer(group, topic string) topics.ConsumerConfig {
	return topics.ConsumerConfig{Kafka: w.Kafka, Group: group, Topics: []string{topic}}
}

// consume consumes the topic edges as the group g until the test ends or stop is called, and adds the records to got.
func (w *wire) consume(t *testing.T, got *seen) (stop func() error) {
	t.Helper()
	return topicstest.Run(t, func(ctx context.Context) error {
		return topics.Consume(ctx, w.consumer("g", topics.Edges), got.handle)
	})
}

func TestConsume_CommitsAfterEffect(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 100)...)
	var got seen
	stop := topicstest.Run(t, func(ctx context.Context) error {
		return topics.Consume(ctx, w.consumer("g", topics.Edges), func(_ context.Context, rs []*kgo.Record) error {
			expect.AtMost(t, w.Committed("g", topics.Edges), int64(got.len()), "committed offsets: no more than records that had their effect")
			got.add(rs)
			return nil
		})
	})
	eventually.True(t, "100 records", func() bool { return got.len() == 100 })
	must.OK(t, stop())
	expect.Equal(t, w.Committed("g", topics.Edges), 100, "committed offsets")
}

func TestConsume_ReturnsErrorOfHandler(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 10)...)
	errBroken := errors.New("broken")
	err := topics.Consume(t.Context(), w.consumer("g", topics.Edges), func(context.Context, []*kgo.Record) error { return errBroken })
	expect.Is(t, err, errBroken, "Consume")
	expect.Equal(t, w.Committed("g", topics.Edges), 0, "committed offsets")
	var got seen
	w.consume(t, &got)
	eventually.True(t, "the records are delivered again", func() bool { return got.len() == 10 })
}

func TestConsume_ReportsFailedCommit(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 10)...)
	w.Broker().ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range req.(*kmsg.OffsetCommitRequest).Topics {
			st := kmsg.NewOffsetCommitResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetCommitResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.GroupAuthorizationFailed.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit())
	defer cancel()
	err := topics.Consume(ctx, w.consumer("g", topics.Edges), func(context.Context, []*kgo.Record) error { return nil })
	expect.Is(t, err, kerr.GroupAuthorizationFailed, "Consume")
}

// Aborted records and markers are not passed to handle, but the committed offsets reach the end.
func TestConsume_CommitsPastMarkers(t *testing.T) {
	w := newWire(t)
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		w.transact(t, end, keyed(topics.Edges, numbered(fmt.Sprintf("tx%d-", i), 8))...)
	}
	var got seen
	stop := topicstest.Run(t, func(ctx context.Context) error {
		return topics.Consume(ctx, w.consumer("g", topics.Edges), func(_ context.Context, rs []*kgo.Record) error {
			for _, r := range rs {
				expect.False(t, r.Attrs.IsControl(), "a marker is delivered, offset %d", r.Offset)
			}
			got.add(rs)
			return nil
		})
	})
	eventually.True(t, "the end is committed", func() bool { return w.Committed("g", topics.Edges) == w.End(topics.Edges) })
	_ = stop()
	expect.Equal(t, len(got.values), 16, "values")
	expect.Equal(t, got.values["tx1-0"], 0, "deliveries of an aborted value")
}

// A retry for one group replaces the original record in a compacted topic. Another group that reads the topic again, for
// example after an offset reset, must get the retry. In any other topic that group still gets the original.
func TestConsume_GetsRetriesOfCompactedTopics(t *testing.T) {
	w := newWire(t)
	header := kgo.RecordHeader{Key: topics.RetryHeader, Value: topics.Retry{Group: "interests", Attempt: 1}.Value()}
	for _, topic := range []string{topics.UsersDeleted, topics.Edges} {
		w.Send(&kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("retry of " + topic), Headers: []kgo.RecordHeader{header}})
	}
	w.Send(&kgo.Record{Topic: topics.Edges, Key: []byte("k"), Value: []byte("last")})
	var got seen
	cfg := w.consumer("g", topics.Edges)
	cfg.Topics = append(cfg.Topics, topics.UsersDeleted)
	topicstest.Run(t, func(ctx context.Context) error {
		return topics.Consume(ctx, cfg, got.handle)
	})
	eventually.True(t, "all offsets are committed", func() bool {
		return w.Committed("g", topics.Edges) == 2 && w.Committed("g", topics.UsersDeleted) == 1
	})
	got.mu.Lock()
	defer got.mu.Unlock()
	want := map[string]int{"retry of users-deleted": 1, "last": 1}
	expect.NoDiff(t, got.values, want, "values: the last record and the retry of the compacted topic")
}

// Members join and leave while records are produced. Every record has its effect, and a clean handover repeats none.
func TestConsume_HandsOver(t *testing.T) {
	w := newWire(t)
	var got seen
	stop := w.consume(t, &got)
	total := 0
	for round := range 3 {
		w.produce(topics.Edges, numbered(fmt.Sprintf("r%d-", round), 200)...)
		total += 200
		next := w.consume(t, &got)
		eventually.True(t, "the round's records", func() bool { return got.len() == total })
		must.OK(t, stop())
		stop = next
	}
	w.produce(topics.Edges, "last")
	eventually.True(t, "the last record", func() bool { return got.len() == total+1 })
	_ = stop()
	for v, n := range got.values {
		expect.Equal(t, n, 1, "times that %s had its effect", v)
	}
}

// network dials until it is cut.
type network struct {
	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

func (l *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return nil, errors.New("network is cut")
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	l.conns = append(l.conns, conn)
	return conn, err
}

func (l *network) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

// Without the ping, the client library would retry silently.
func TestConsume_ReportsUnavailableBrokers(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Pins, "a")
	k, l := w.Kafka, new(network)
	k.Dial = l.dial
	cfg := topics.ConsumerConfig{Kafka: k, Group: "g", Topics: []string{topics.Pins}, Quiet: 300 * time.Millisecond}
	ended := make(chan error, 1)
	go func() {
		ended <- topics.Consume(t.Context(), cfg, func(context.Context, []*kgo.Record) error { return nil })
	}()
	eventually.True(t, "the record is consumed", func() bool {
		at, err := w.Admin().FetchOffsets(t.Context(), "g")
		return err == nil && len(at[topics.Pins]) > 0
	})
	l.cut()
	select {
	case err := <-ended:
		expect.Error(t, err, "network is cut", "error")
	case <-time.After(30 * time.Second):
		t.Error("Consume did not return an error")
	}
	expect.Error(t, topics.Consume(t.Context(), cfg, nil), "network is cut", "started while brokers are unavailable")
}
