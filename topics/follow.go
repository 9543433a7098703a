package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FollowConfig says what a process follows by itself.
type FollowConfig struct {
	ConsumerConfig // its Group is the process's own
	// Marks returns how far the store is filled, which is where Follow goes on. It is called once, first of all.
	Marks func() (Marks, error)
	// Anew reads a topic that was recreated or truncated from its oldest record on, for stores where a repeat changes nothing.
	// Default false: Follow fails with a *ChangedTopicError. With either value it fails with one if retention removed records
	// before the store had them: reading on would hide the loss.
	Anew bool
	// Joined is called whenever Wait can see how far the store is; nil: nobody is told.
	Joined func()
}

// Follow is Consume for a process that needs every partition, and whose store says how far it is: the brokers are told,
// for Wait, and not asked. handle makes durable, at once, what records bring and how far the topics are applied with them.
// It gets no records when only transaction markers were read: a mark that stays before them would look like lost records once
// retention has removed the markers.
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
		at, err := resumeWithoutGap(ctx, f.Kafka, f.Topics, marks)
		var changed *ChangedTopicError
		if !f.Anew || !errors.As(err, &changed) || changed.Gap() {
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
