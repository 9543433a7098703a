package insight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// SinkDeps are the dependencies of a Sink.
type SinkDeps struct {
	Kafka    topics.Kafka
	Stream   topics.Stream[schemas.EnrichedAction]
	Instance string // name of the process, unique among the running ones
	Store    *Store // of this process
	Now      func() time.Time
	Deleted  Deleted // nil: no rows are erased
}

// Deleted is the set of deleted users. topics.DeletedUsers implements it.
type Deleted interface {
	Each(visit func(user string, _ *schemas.DeletedUser))
}

// Sink fills a store from all partitions of the topic. Each process is a separate consumer group:
// topics.InstanceGroup of insights.
type Sink struct {
	cfg  Config
	deps SinkDeps
}

// NewSink returns a sink. It returns an error if cfg is invalid.
func NewSink(cfg Config, deps SinkDeps) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("insight sink: %w", err)
	}
	return &Sink{cfg: cfg, deps: deps}, nil
}

// Run consumes and sweeps until ctx is done, then returns nil; it returns an error if something fails. It resumes at
// the store's applied offsets and may be called again. If the topic is not the one that filled the store, Run returns a
// *topics.ChangedTopicError, because records in both topics would count twice.
func (s *Sink) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.consume(ctx) })
	group.Go(func() error { return periodic.Run(ctx, s.cfg.SweepInterval, s.sweep) })
	return group.Wait()
}

func (s *Sink) consume(ctx context.Context) error {
	err := topics.Follow(ctx, topics.FollowConfig{
		ConsumerConfig: topics.ConsumerConfig{
			Kafka: s.deps.Kafka, Group: topics.InstanceGroup(topics.Insights, s.deps.Instance), Reader: topics.Insights,
			Topics: []string{s.deps.Stream.Name},
		},
		Checkpoint: s.checkpoint,
	}, s.handle)
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; restore the topic; or, for the store in %s, %s", err, s.deps.Store.dir, remedy)
	}
	return err
}

func (s *Sink) checkpoint() (topics.Checkpoint, error) {
	checkpoint, err := s.deps.Store.Checkpoint()
	return topics.Checkpoint{s.deps.Stream.Name: checkpoint}, err
}

// sweep deletes expired rows and the rows of deleted users.
func (s *Sink) sweep() error {
	now := s.deps.Now()
	err := s.deps.Store.Sweep(now, s.cfg.sequenceDays())
	if err != nil || s.deps.Deleted == nil {
		return err
	}
	var users []schemas.UserID
	s.deps.Deleted.Each(func(user string, _ *schemas.DeletedUser) { users = append(users, schemas.UserID(user)) })
	return s.deps.Store.Erase(users, now, s.cfg.sequenceDays())
}

// handle writes records durably. It ignores records that cannot be read: the sink of features reads the same topic and
// sends them to the dead-letter topic.
func (s *Sink) handle(_ context.Context, records []*kgo.Record, to topics.Checkpoint) error {
	applied := make([]Applied, len(records))
	for i, r := range records {
		a, err := s.deps.Stream.Decode(r.Value)
		var bad *schemas.BadRecordError
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		applied[i] = Applied{r.Partition, r.Offset, a}
	}
	return s.deps.Store.Apply(applied, to[s.deps.Stream.Name])
}
