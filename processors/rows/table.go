package rows

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/topics"
)

// tableConsumer is the consumer with which Goka reads tables. Goka's recovery ends when the record just before the high
// watermark arrives. After a transaction, that record is a marker, which sarama does not deliver, so recovery would never
// end. This consumer reads committed records and delivers markers as tombstones with a separate key.
type tableConsumer struct {
	sarama.Consumer // nil: Goka calls only the methods below
	kafka           topics.Kafka

	mu   sync.Mutex
	open map[*tablePartition]struct{}
	ends map[int32]int64 // end offset of each partition of the group's table, as of its last fetch
	wg   sync.WaitGroup
}

// tableFetchBytes limits a fetch, unless its first batch is larger.
const tableFetchBytes = 256 << 10

var errUnused = errors.New("not used by rows")

func newTableConsumer(k topics.Kafka) *tableConsumer {
	return &tableConsumer{kafka: k, open: map[*tablePartition]struct{}{}, ends: map[int32]int64{}}
}

// ConsumePartition starts to read one partition from an offset, or from sarama's oldest or newest.
func (c *tableConsumer) ConsumePartition(topic string, partition int32, offset int64) (sarama.PartitionConsumer, error) {
	from := kgo.NewOffset().At(offset) // both clients use Kafka's numbers for the oldest and the newest offset
	client, err := c.kafka.Client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: from}}),
		kgo.KeepControlRecords(),
		// In every partition, one fetch is being delivered while the next one is in flight. A short row takes five times as
		// much memory as on the wire.
		kgo.FetchMaxBytes(tableFetchBytes),
		kgo.FetchMaxPartitionBytes(tableFetchBytes),
	)
	if err != nil {
		return nil, fmt.Errorf("read table %s/%d: %w", topic, partition, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &tablePartition{
		consumer: c, client: client, topic: topic, partition: partition, ctx: ctx, cancel: cancel,
		messages: make(chan *sarama.ConsumerMessage, 1024), errors: make(chan *sarama.ConsumerError, 1),
	}
	c.mu.Lock()
	c.open[p] = struct{}{}
	c.mu.Unlock()
	c.wg.Go(p.run)
	return p, nil
}

// Close stops all reads and waits for them.
func (c *tableConsumer) Close() error {
	c.mu.Lock()
	for p := range c.open {
		p.cancel()
	}
	c.mu.Unlock()
	c.wg.Wait()
	return nil
}

// HighWaterMarks returns nil. Goka only computes statistics from it, which nothing reads.
func (c *tableConsumer) HighWaterMarks() map[string]map[int32]int64 { return nil }

// end returns the end offset of a partition as of the last fetch, or 0.
func (c *tableConsumer) end(partition int32) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends[partition]
}

// tablePartition reads one partition.
type tablePartition struct {
	sarama.PartitionConsumer // nil: Goka calls only the methods below
	consumer                 *tableConsumer
	client                   *kgo.Client
	topic                    string
	partition                int32
	ctx                      context.Context // canceled by Close, not at the end of the call that starts the read
	cancel                   context.CancelFunc
	messages                 chan *sarama.ConsumerMessage
	errors                   chan *sarama.ConsumerError
}

func (p *tablePartition) run() {
	defer func() {
		p.consumer.mu.Lock()
		delete(p.consumer.open, p)
		p.consumer.mu.Unlock()
		p.client.Close()
		close(p.messages)
		close(p.errors)
	}()
	for {
		fetches := p.client.PollFetches(p.ctx)
		if p.ctx.Err() != nil {
			return
		}
		if err := fetches.Err(); err != nil {
			p.errors <- &sarama.ConsumerError{Topic: p.topic, Partition: p.partition, Err: err}
			return
		}
		fetches.EachPartition(p.deliver)
	}
}

// deliver delivers records until the reader is closed.
func (p *tablePartition) deliver(f kgo.FetchTopicPartition) {
	p.consumer.mu.Lock()
	p.consumer.ends[p.partition] = f.HighWatermark
	p.consumer.mu.Unlock()
	for _, r := range f.Records {
		m := &sarama.ConsumerMessage{
			Topic: p.topic, Partition: p.partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp,
		}
		if r.Attrs.IsControl() {
			m.Key, m.Value = reservedKey(controlKind), nil
		}
		select {
		case p.messages <- m:
		case <-p.ctx.Done():
			return
		}
	}
}

// AsyncClose stops the read. Messages and Errors are closed then.
func (p *tablePartition) AsyncClose() { p.cancel() }

// Messages returns the records and markers.
func (p *tablePartition) Messages() <-chan *sarama.ConsumerMessage { return p.messages }

// Errors returns the error that ended the read.
func (p *tablePartition) Errors() <-chan *sarama.ConsumerError { return p.errors }
