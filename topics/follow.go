package topics

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Mark is how far a store is filled from one partition.
type Mark struct {
	Topic kadm.TopicID // of a topic that is deleted and made anew it is another; zero: not known
	Next  int64        // offset of the first record that the store does not have
}

// Marks are how far a store is filled, by topic and partition.
type Marks map[string]map[int32]Mark

// offsetBytes is how long the offset is in the bytes of a mark. The topic's id follows.
const offsetBytes = 8

// Bytes returns the mark as a store keeps it: the offset, big-endian, and the topic's id.
func (m Mark) Bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(m.Next)), m.Topic[:]...)
}

// ParseMark reads what Bytes has made. Eight bytes are an offset of a topic whose id is not known.
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

// ChangedTopicError says that a topic is not what a store was filled from: what is applied up to an offset says nothing
// of the records that are there now.
type ChangedTopicError struct {
	Topic     string
	Partition int32
	Was       Mark // the store's
	Is        Mark // the topic that there is, and where the partition ends
}

// Error says what has changed; what to do depends on the store.
func (e *ChangedTopicError) Error() string {
	if e.madeAnew() {
		return fmt.Sprintf("topic %s was made anew since records of it were applied: it had the id %s, and has %s",
			e.Topic, e.Was.Topic, e.Is.Topic)
	}
	return fmt.Sprintf("%s/%d ends at %d, but is applied up to %d: records were lost", e.Topic, e.Partition, e.Is.Next, e.Was.Next-1)
}

func (e *ChangedTopicError) madeAnew() bool {
	return e.Was.Topic != kadm.TopicID{} && e.Was.Topic != e.Is.Topic
}

// Fatal is true: to try again does not mend it.
func (e *ChangedTopicError) Fatal() bool { return true }

// Resume returns where a store that is filled up to marks goes on in every partition of the topics: there or, without a
// mark, with the oldest record. A topic that is not the one of a mark, or ends before it, is a *ChangedTopicError.
func Resume(ctx context.Context, k Kafka, topics []string, marks Marks) (Marks, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	there, err := l.admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	starts, err := l.Starts(ctx, topics...)
	if err != nil {
		return nil, err
	}
	ends, err := l.Ends(ctx, topics...)
	if err != nil {
		return nil, err
	}
	at := Marks{}
	for topic, partitions := range ends {
		for p, end := range partitions {
			mark, err := resume(topic, p, marks, Mark{there[topic].ID, end})
			if err != nil {
				return nil, err
			}
			if mark.Topic = there[topic].ID; mark.Next < 0 {
				mark.Next = starts[topic][p]
			}
			at.Set(topic, p, mark)
		}
	}
	return at, nil
}

// resume returns the mark of a partition that ends at end, one with a negative offset if there is none.
func resume(topic string, partition int32, marks Marks, end Mark) (Mark, error) {
	mark, ok := marks[topic][partition]
	if !ok {
		return Mark{Next: -1}, nil
	}
	err := &ChangedTopicError{Topic: topic, Partition: partition, Was: mark, Is: end}
	if err.madeAnew() || mark.Next > end.Next {
		return Mark{}, err
	}
	return mark, nil
}

// FollowConfig says what a process follows by itself.
type FollowConfig struct {
	ConsumerConfig // its Group is the process's own
	// Marks returns how far the store is filled, which is where Follow goes on. It is called once, first of all.
	Marks func() (Marks, error)
	// Anew reads a topic that has changed from its oldest record on, for stores where a repeat changes nothing. Default false:
	// Follow fails with a *ChangedTopicError.
	Anew bool
	// Joined is called whenever Wait can see how far the store is; nil: nobody is told.
	Joined func()
}

// Follow is Consume for a process that needs every partition, and whose store says how far it is: the brokers are told,
// for Wait, and not asked. handle makes durable, at once, what records bring and how far the topics are applied with them.
//
// What was committed under the group's name before counts for nothing, so a store that was lost is filled again from
// what the topics still have.
func Follow(ctx context.Context, f FollowConfig, handle func(ctx context.Context, records []*kgo.Record, to Marks) error) error {
	at, err := f.begin(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("follow as %s: %w", f.Group, err)
	}
	following, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := &progressed{at: at}
	err = consume(following, f.ConsumerConfig, func(ctx context.Context, records []*kgo.Record, done committable) error {
		to := p.marks(done)
		if err := handle(ctx, records, to); err != nil {
			return err
		}
		p.advance(to)
		return nil
	}, kgo.AdjustFetchOffsetsFn(p.resume), kgo.OnPartitionsAssigned(func(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
		if err := f.join(ctx, client, p); err != nil {
			fail(err)
		}
	}))
	if err == nil && following.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("follow as %s: %w", f.Group, context.Cause(following))
	}
	return err
}

// join tells the brokers how far the store is, whatever they were told under the group's name before.
func (f FollowConfig) join(ctx context.Context, client *kgo.Client, p *progressed) error {
	if err := commit(ctx, client, p.committable()); err != nil {
		return err
	}
	if f.Joined != nil {
		f.Joined()
	}
	return nil
}

// begin returns where to go on.
func (f FollowConfig) begin(ctx context.Context) (Marks, error) {
	marks, err := f.Marks()
	if err != nil {
		return nil, err
	}
	marks = maps.Clone(marks)
	for {
		at, err := Resume(ctx, f.Kafka, f.Topics, marks)
		var changed *ChangedTopicError
		if !f.Anew || !errors.As(err, &changed) {
			return at, err
		}
		delete(marks, changed.Topic)
	}
}

// progressed is how far a follower is.
type progressed struct {
	mu sync.Mutex
	at Marks
}

// marks returns what done says, with the topics' ids.
func (p *progressed) marks(done committable) Marks {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := Marks{}
	for topic, partitions := range done {
		for partition, next := range partitions {
			to.Set(topic, partition, Mark{p.at[topic][partition].Topic, next.Offset})
		}
	}
	return to
}

func (p *progressed) advance(to Marks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, partitions := range to {
		maps.Copy(p.at[topic], partitions)
	}
}

// resume puts every assigned partition to where the store goes on.
func (p *progressed) resume(_ context.Context, fetched map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, partitions := range fetched {
		for partition := range partitions {
			partitions[partition] = kgo.NewOffset().At(p.at[topic][partition].Next)
		}
	}
	return fetched, nil
}

func (p *progressed) committable() committable {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := committable{}
	for topic, partitions := range p.at {
		all[topic] = map[int32]kgo.EpochOffset{}
		for partition, mark := range partitions {
			all[topic][partition] = kgo.EpochOffset{Epoch: -1, Offset: mark.Next}
		}
	}
	return all
}
