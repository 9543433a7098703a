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
// end. This consumer reads committed records and delivers markers as tombstones with a key of their own.
type tableConsumer struct {
	kafka topics.Kafka

	mu   sync.Mutex
	open map[*tablePartition]struct{}
	ends map[string]map[int32]int64
	wg   sync.WaitGroup
}

// tableFetchBytes is how much of a partition is fetched at a time. A larger batch is fetched whole.
const tableFetchBytes = 256 << 10

var errUnused = errors.New("not used by rows")

func newTableConsumer(k topics.Kafka) *tableConsumer {
	return &tableConsumer{kafka: k, open: map[*tablePartition]struct{}{}, ends: map[string]map[int32]int64{}}
}

// ConsumePartition starts to read one partition from an offset, or from sarama's oldest or newest.
func (c *tableConsumer) ConsumePartition(topic string, partition int32, offset int64) (sarama.PartitionConsumer, error) {
	from := kgo.NewOffset().At(offset)
	switch offset {
	case sarama.OffsetOldest:
		from = kgo.NewOffset().AtStart()
	case sarama.OffsetNewest:
		from = kgo.NewOffset().AtEnd()
	}
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

// HighWaterMarks returns the end offsets for Goka's statistics.
func (c *tableConsumer) HighWaterMarks() map[string]map[int32]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]map[int32]int64{}
	for topic, partitions := range c.ends {
		out[topic] = map[int32]int64{}
		for p, end := range partitions {
			out[topic][p] = end
		}
	}
	return out
}

func (c *tableConsumer) sawEnd(topic string, partition int32, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[topic] == nil {
		c.ends[topic] = map[int32]int64{}
	}
	c.ends[topic][partition] = end
}

// end returns the end offset of a partition as of the last fetch.
func (c *tableConsumer) end(topic string, partition int32) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends[topic][partition]
}

// The other methods of sarama.Consumer are not used.

func (c *tableConsumer) Topics() ([]string, error)          { return nil, errUnused }
func (c *tableConsumer) Partitions(string) ([]int32, error) { return nil, errUnused }
func (c *tableConsumer) Pause(map[string][]int32)           {}
func (c *tableConsumer) Resume(map[string][]int32)          {}
func (c *tableConsumer) PauseAll()                          {}
func (c *tableConsumer) ResumeAll()                         {}

// tablePartition reads one partition.
type tablePartition struct {
	consumer  *tableConsumer
	client    *kgo.Client
	topic     string
	partition int32
	ctx       context.Context // lives until Close, longer than the call that starts the read
	cancel    context.CancelFunc
	messages  chan *sarama.ConsumerMessage
	errors    chan *sarama.ConsumerError
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
		fetches.EachPartition(p.hand)
	}
}

// hand delivers records until the reader is closed.
func (p *tablePartition) hand(f kgo.FetchTopicPartition) {
	p.consumer.sawEnd(p.topic, p.partition, f.HighWatermark)
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

func (p *tablePartition) AsyncClose()                              { p.cancel() }
func (p *tablePartition) Close() error                             { p.cancel(); return nil }
func (p *tablePartition) Messages() <-chan *sarama.ConsumerMessage { return p.messages }
func (p *tablePartition) Errors() <-chan *sarama.ConsumerError     { return p.errors }
func (p *tablePartition) HighWaterMarkOffset() int64 {
	return p.consumer.HighWaterMarks()[p.topic][p.partition]
}
func (p *tablePartition) Pause()         {}
func (p *tablePartition) Resume()        {}
func (p *tablePartition) IsPaused() bool { return false }
