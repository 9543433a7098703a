package topics

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Mark is the checkpoint of a store for one partition.
type Mark struct {
	Topic kadm.TopicID // a recreated topic has another id; zero: unknown
	Next  int64        // offset of the first record that the store does not have
}

// Marks is the checkpoint of a store, by topic and partition.
type Marks map[string]map[int32]Mark

// offsetBytes is the length of the offset in an encoded mark. The topic's id follows.
const offsetBytes = 8

// Bytes returns the encoded mark: the offset, big-endian, and the topic's id.
func (m Mark) Bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(m.Next)), m.Topic[:]...)
}

// ParseMark decodes a mark that Bytes encoded. Eight bytes are an offset without a known topic id.
func ParseMark(b []byte) (Mark, error) {
	var m Mark
	if len(b) != offsetBytes && len(b) != offsetBytes+len(m.Topic) {
		return m, fmt.Errorf("mark of %d bytes: want %d or %d", len(b), offsetBytes, offsetBytes+len(m.Topic))
	}
	m.Next = int64(binary.BigEndian.Uint64(b))
	copy(m.Topic[:], b[offsetBytes:])
	return m, nil
}

// Set sets the mark of a partition.
func (m Marks) Set(topic string, partition int32, mark Mark) {
	if m[topic] == nil {
		m[topic] = map[int32]Mark{}
	}
	m[topic][partition] = mark
}

// ChangedTopicError is returned when a topic no longer has records that a store was filled from or still needs. The topic
// was recreated or truncated, or its retention removed records before they were applied.
type ChangedTopicError struct {
	Topic     string
	Partition int32
	Was       Mark  // the store's mark
	Is        Mark  // the current topic, and the end offset of the partition
	Start     int64 // oldest offset of the partition
}

// Error says what has changed. What to do depends on the store.
func (e *ChangedTopicError) Error() string {
	switch {
	case e.madeAnew():
		return fmt.Sprintf("topic %s was made anew since records of it were applied: it had the id %s, and has %s",
			e.Topic, e.Was.Topic, e.Is.Topic)
	case e.Gap():
		return fmt.Sprintf("%s/%d starts at offset %d, but is applied only up to %d: retention removed records before they were applied",
			e.Topic, e.Partition, e.Start, e.Was.Next-1)
	}
	return fmt.Sprintf("%s/%d ends at %d, but is applied up to %d: records were lost", e.Topic, e.Partition, e.Is.Next, e.Was.Next-1)
}

func (e *ChangedTopicError) madeAnew() bool {
	return e.Was.Topic != kadm.TopicID{} && e.Was.Topic != e.Is.Topic
}

// Gap reports whether the partition starts after the mark.
func (e *ChangedTopicError) Gap() bool { return !e.madeAnew() && e.Start > e.Was.Next }

// Fatal returns true: a retry does not help.
func (e *ChangedTopicError) Fatal() bool { return true }

// Resume returns the position in every partition of the topics at which a store continues: its mark or, without one, the
// oldest record. It returns a *ChangedTopicError if a topic is not that of its mark, or ends before the mark.
func Resume(ctx context.Context, k Kafka, topics []string, marks Marks) (Marks, error) {
	return resume(ctx, k, topics, marks, false)
}

// resume is Resume, but with gaps it also returns the error if a partition starts after its mark.
func resume(ctx context.Context, k Kafka, topics []string, marks Marks, gaps bool) (Marks, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	there, err := l.admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	e, err := l.extent(ctx, topics...)
	if err != nil {
		return nil, err
	}
	at := Marks{}
	for topic, partitions := range e.ends {
		for p, end := range partitions {
			is := Mark{Topic: there[topic].ID, Next: e.starts[topic][p]}
			if was, ok := marks[topic][p]; ok {
				err := &ChangedTopicError{Topic: topic, Partition: p, Was: was, Is: Mark{is.Topic, end}, Start: is.Next}
				if err.madeAnew() || was.Next > end || gaps && err.Gap() {
					return nil, err
				}
				is.Next = was.Next
			}
			at.Set(topic, p, is)
		}
	}
	return at, nil
}
