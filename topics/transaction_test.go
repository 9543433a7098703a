package topics_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// holding is a partitioner that blocks at the second record of a topic.
type holding struct {
	topic         string
	reached, goOn chan struct{}
	seen          int
}

func (h *holding) ForTopic(topic string) kgo.TopicPartitioner {
	if topic != h.topic {
		return kgo.ManualPartitioner().ForTopic(topic)
	}
	return h
}

func (h *holding) RequiresConsistency(*kgo.Record) bool { return true }

func (h *holding) Partition(r *kgo.Record, _ int) int {
	if h.seen++; h.seen == 2 {
		close(h.reached)
		<-h.goOn
	}
	return int(r.Partition)
}

// holdingClient returns a transactional client that blocks when it learns of the topic edges.
func holdingClient(t *testing.T, w *wire) (*kgo.Client, *holding) {
	t.Helper()
	h := &holding{topic: topics.Edges, reached: make(chan struct{}), goOn: make(chan struct{})}
	tx := must.Get(w.Kafka.Transactional("tx", kgo.RecordPartitioner(h)))(t)
	t.Cleanup(tx.Close)
	return tx, h
}

// Records acknowledged in the first transaction of a topic are committed, even though the client has not stored the topic
// yet: it is still partitioning the records that waited for the topic.
func TestEndTransaction_CommitsFirstTransactionOfTopic(t *testing.T) {
	w := newWire(t)
	tx, h := holdingClient(t, w)
	must.OK(t, tx.BeginTransaction())
	acknowledged := make(chan error, 2)
	for range 2 {
		tx.Produce(t.Context(), &kgo.Record{Topic: topics.Edges, Value: []byte("v")}, func(_ *kgo.Record, err error) { acknowledged <- err })
	}
	<-h.reached
	must.OK(t, <-acknowledged)
	if leader, _, _ := tx.PartitionLeader(topics.Edges, 0); leader >= 0 {
		t.Fatal("the client already has the metadata: the race was not hit")
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := topics.EndTransaction(soon, tx, kgo.TryCommit, topics.Edges)
	expect.Is(t, err, context.DeadlineExceeded, "end before the client has the metadata of the topic")
	close(h.goOn)
	must.OK(t, <-acknowledged)
	must.OK(t, topics.EndTransaction(t.Context(), tx, kgo.TryCommit, topics.Edges))
	in := w.Client(kgo.ConsumeTopics(topics.Edges))
	got := 0
	eventually.True(t, "both records are readable", func() bool {
		got += in.PollRecords(t.Context(), 2).NumRecords()
		return got == 2
	})
}

// A topic that is new to a transaction with a known topic is stored when the transaction has ended. The brokers then accept
// its records from the next transaction.
func TestEndTransaction_WaitsForAdditionalTopic(t *testing.T) {
	w := newWire(t)
	tx, h := holdingClient(t, w)
	answers := make(chan error, 3)
	begin := func(of ...string) {
		must.OK(t, tx.BeginTransaction())
		for _, topic := range of {
			tx.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte("v")}, func(_ *kgo.Record, err error) { answers <- err })
		}
	}
	acknowledged := func(n int) {
		for range n {
			must.OK(t, <-answers)
		}
	}
	begin(topics.Pins)
	acknowledged(1)
	must.OK(t, topics.EndTransaction(t.Context(), tx, kgo.TryCommit, topics.Pins))
	begin(topics.Pins, topics.Edges, topics.Edges)
	<-h.reached
	acknowledged(2) // the third is held
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := topics.EndTransaction(soon, tx, kgo.TryCommit, topics.Pins, topics.Edges)
	expect.Is(t, err, context.DeadlineExceeded, "end before the client has the metadata of both topics")
	close(h.goOn)
	acknowledged(1)
	must.OK(t, topics.EndTransaction(t.Context(), tx, kgo.TryCommit, topics.Pins, topics.Edges))
	begin(topics.Pins, topics.Edges)
	acknowledged(2)
	must.OK(t, topics.EndTransaction(t.Context(), tx, kgo.TryCommit))
	expect.Equal(t, len(w.Records(topics.Edges)), 3, "committed records of the topic")
}
