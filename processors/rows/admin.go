package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// adminTimeout is the timeout of each metadata request.
const adminTimeout = 15 * time.Second

// topicManager answers Goka's queries about topics. It creates no topics: only the catalogue defines them.
type topicManager struct{ admin *kadm.Client }

// Partitions returns the partitions of a topic.
func (m topicManager) Partitions(topic string) ([]int32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	list, err := m.admin.ListTopics(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	detail := list[topic]
	if detail.Err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w: create the topics with `smartfeed topics apply`", topic, detail.Err)
	}
	return detail.Partitions.Numbers(), nil
}

// EnsureTableExists returns an error unless the table has n partitions.
func (m topicManager) EnsureTableExists(topic string, n int) error { return m.ensure(topic, n) }

// EnsureStreamExists returns an error unless the topic has n partitions.
func (m topicManager) EnsureStreamExists(topic string, n int) error { return m.ensure(topic, n) }

// EnsureTopicExists returns an error unless the topic has n partitions.
func (m topicManager) EnsureTopicExists(topic string, n, _ int, _ map[string]string) error {
	return m.ensure(topic, n)
}

func (m topicManager) ensure(topic string, n int) error {
	have, err := m.Partitions(topic)
	if err != nil {
		return err
	}
	if len(have) != n {
		return fmt.Errorf("topic %s has %d partitions, want %d as the group's inputs have", topic, len(have), n)
	}
	return nil
}

// GetOffset returns the first offset of a partition, or its end offset including uncommitted records (the high watermark). It
// repeats the request while brokers elect a leader, or the client's metadata names a previous one.
func (m topicManager) GetOffset(topic string, partition int32, at int64) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return backoff.Retry(ctx, func() (int64, error) {
		offset, err := m.offset(ctx, topic, partition, at)
		if err != nil && !kerr.IsRetriable(err) {
			err = backoff.Permanent(err)
		}
		return offset, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(offsetPoll)), backoff.WithMaxElapsedTime(adminTimeout))
}

// offsetPoll is the time between two requests for an offset.
const offsetPoll = 50 * time.Millisecond

func (m topicManager) offset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	list := m.admin.ListEndOffsets
	if at == sarama.OffsetOldest {
		list = m.admin.ListStartOffsets
	}
	offsets, err := list(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	offset, _ := offsets.Lookup(topic, partition)
	if offset.Err != nil {
		return 0, fmt.Errorf("list offsets of %s/%d: %w", topic, partition, offset.Err)
	}
	return offset.Offset, nil
}

// Close does nothing, because the client is shared.
func (m topicManager) Close() error { return nil }

// noProducer is the producer that Goka requires. It always fails, because all records are written in transactions.
type noProducer struct{}

func (noProducer) Emit(topic, key string, value []byte) *goka.Promise {
	return noProducer{}.EmitWithHeaders(topic, key, value, nil)
}

func (noProducer) EmitWithHeaders(topic, _ string, _ []byte, _ goka.Headers) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	finish(nil, fmt.Errorf("emit to %s: %w", topic, errUnused))
	return promise
}

func (noProducer) Close() error { return nil }
