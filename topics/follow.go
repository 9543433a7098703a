package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FollowConfig configures Follow.
type FollowConfig struct {
	ConsumerConfig // Group is unique to the process
	// Checkpoint returns the checkpoint of the store, where Follow resumes. Follow calls it once, before anything else.
	Checkpoint func() (Checkpoint, error)
	// ReadChanged makes Follow read a recreated or truncated topic from its oldest record, for stores with idempotent writes.
	// By default, Follow returns a *ChangedTopicError. It always returns one if retention removed records before the store
	// had them, because to continue would hide the loss.
	ReadChanged bool
	// Joined is called whenever the checkpoint has been committed, so that Wait sees it; nil: no call.
	Joined func()
}

// followMaxWait is the time that a broker waits for records. It delays no rebalance, because the group has one member, and spares a
// quiet process most of its fetches.
const followMaxWait = 5 * time.Second

// Follow is Consume for a process that reads every partition and keeps its own checkpoint. Follow commits the checkpoint to
// the brokers for Wait, but never resumes from it. handle must make the effect of the records and the new checkpoint
// durable together. handle gets no records if only transaction markers were read. A checkpoint before such markers would
// look like lost records once retention has removed the markers.
//
// Offsets committed earlier under the group's name are ignored. A lost store is filled again from the records that the
// topics still have.
func Follow(ctx context.Context, f FollowConfig, handle func(ctx context.Context, records []*kgo.Record, to Checkpoint) error) error {
	at, err := f.startingCheckpoint(ctx)
	if err != nil {
		return unlessCanceled(ctx, "follow as "+f.Group, err)
	}
	following, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := &progress{at: at}
	err = consume(following, f.ConsumerConfig, func(ctx context.Context, records []*kgo.Record, done committable) error {
		to := p.checkpoint(done)
		if err := handle(ctx, records, to); err != nil {
			return err
		}
		p.advance(to)
		return nil
	}, kgo.FetchMaxWait(followMaxWait), kgo.AdjustFetchOffsetsFn(p.resume), kgo.OnPartitionsAssigned(func(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
		if err := f.join(ctx, client, p); err != nil {
			fail(err)
		}
	}))
	if err == nil && following.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("follow as %s: %w", f.Group, context.Cause(following))
	}
	return err
}

// join commits the checkpoint of the store, and so replaces any earlier offsets of the group.
func (f FollowConfig) join(ctx context.Context, client *kgo.Client, p *progress) error {
	if err := commit(ctx, client, p.committable()); err != nil {
		return err
	}
	if f.Joined != nil {
		f.Joined()
	}
	return nil
}

// startingCheckpoint returns the position to resume from.
func (f FollowConfig) startingCheckpoint(ctx context.Context) (Checkpoint, error) {
	checkpoint, err := f.Checkpoint()
	if err != nil {
		return nil, err
	}
	checkpoint = maps.Clone(checkpoint)
	for {
		at, err := resume(ctx, f.Kafka, f.Topics, checkpoint, true)
		changed, ok := errors.AsType[*ChangedTopicError](err)
		if !ok || !f.ReadChanged || changed.Gap() {
			return at, err
		}
		delete(checkpoint, changed.Topic)
	}
}

// progress is the position of a follower.
type progress struct {
	mu sync.Mutex
	at Checkpoint
}

// checkpoint returns the checkpoint for the offsets in done, with the ids of the topics.
func (p *progress) checkpoint(done committable) Checkpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := Checkpoint{}
	for topic, partitions := range done {
		for partition, next := range partitions {
			to.Set(topic, partition, PartitionCheckpoint{p.at[topic][partition].Topic, next.Offset})
		}
	}
	return to
}

func (p *progress) advance(to Checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, partitions := range to {
		maps.Copy(p.at[topic], partitions)
	}
}

// resume sets every assigned partition to its position in the checkpoint.
func (p *progress) resume(_ context.Context, fetched map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, partitions := range fetched {
		for partition := range partitions {
			partitions[partition] = kgo.NewOffset().At(p.at[topic][partition].Next)
		}
	}
	return fetched, nil
}

func (p *progress) committable() committable {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := committable{}
	for topic, partitions := range p.at {
		for partition, mark := range partitions {
			all.Set(topic, partition, kgo.EpochOffset{Epoch: -1, Offset: mark.Next})
		}
	}
	return all
}
