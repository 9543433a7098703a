package topics

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// PartitionCheckpoint is the checkpoint of a store for one partition.
type PartitionCheckpoint struct {
	Topic kadm.TopicID // a recreated topic has another id; zero: unknown
	Next  int64        // offset of the first record that the store does not have
}

// Checkpoint is the checkpoint of a store, by topic and partition.
type Checkpoint = ByPartition[PartitionCheckpoint]

// Bytes returns the encoded checkpoint: the offset, big-endian, and the topic's id.
func (c PartitionCheckpoint) Bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(c.Next)), c.Topic[:]...)
}

// ParseCheckpoint decodes a checkpoint that Bytes encoded.
func ParseCheckpoint(b []byte) (c PartitionCheckpoint, err error) {
	if want := 8 + len(c.Topic); len(b) != want {
		return c, fmt.Errorf("checkpoint of %d bytes: want %d", len(b), want)
	}
	c.Next = int64(binary.BigEndian.Uint64(b))
	copy(c.Topic[:], b[8:])
	return c, nil
}

// ChangedTopicError is returned when a topic no longer has records that a store was filled from or still needs. The topic
// was recreated or truncated, or its retention removed records before they were applied.
type ChangedTopicError struct {
	Topic     string
	Partition int32
	Was       PartitionCheckpoint // the checkpoint of the store
	Is        PartitionCheckpoint // the current topic, and the end offset of the partition
	Start     int64               // oldest offset of the partition
}

// Error returns the change. The remedy depends on the store.
func (e *ChangedTopicError) Error() string {
	switch {
	case e.recreated():
		return fmt.Sprintf("topic %s was recreated since its records were applied: it had the id %s, and now has %s",
			e.Topic, e.Was.Topic, e.Is.Topic)
	case e.Gap():
		return fmt.Sprintf("%s/%d starts at offset %d, but is applied only up to %d: retention removed records before they were applied",
			e.Topic, e.Partition, e.Start, e.Was.Next-1)
	}
	return fmt.Sprintf("%s/%d ends at %d, but is applied up to %d: records were lost", e.Topic, e.Partition, e.Is.Next, e.Was.Next-1)
}

func (e *ChangedTopicError) recreated() bool {
	return e.Was.Topic != kadm.TopicID{} && e.Was.Topic != e.Is.Topic
}

// Gap reports whether the partition starts after the checkpoint.
func (e *ChangedTopicError) Gap() bool { return !e.recreated() && e.Start > e.Was.Next }

// Fatal returns true: a retry does not help.
func (e *ChangedTopicError) Fatal() bool { return true }

// Resume returns the position in every partition of the topics at which a store continues: its checkpoint or, without one, the
// oldest record. It returns a *ChangedTopicError if a topic is not that of its checkpoint, or ends before the checkpoint.
func Resume(ctx context.Context, k Kafka, topics []string, checkpoint Checkpoint) (Checkpoint, error) {
	return resume(ctx, k, topics, checkpoint, false)
}

// resume is Resume, but with gaps it also returns the error if a partition starts after its checkpoint.
func resume(ctx context.Context, k Kafka, topics []string, checkpoint Checkpoint, gaps bool) (Checkpoint, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	present, err := l.admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	e, err := l.extent(ctx, topics...)
	if err != nil {
		return nil, err
	}
	at := Checkpoint{}
	for topic, partitions := range e.ends {
		for p, end := range partitions {
			is := PartitionCheckpoint{Topic: present[topic].ID, Next: e.starts[topic][p]}
			if was, ok := checkpoint[topic][p]; ok {
				err := &ChangedTopicError{Topic: topic, Partition: p, Was: was, Is: PartitionCheckpoint{is.Topic, end}, Start: is.Next}
				if err.recreated() || was.Next > end || gaps && err.Gap() {
					return nil, err
				}
				is.Next = was.Next
			}
			at.Set(topic, p, is)
		}
	}
	return at, nil
}
