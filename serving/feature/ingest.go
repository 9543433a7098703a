package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Writer is the store that a Sink writes to. *EmbeddedStore implements it.
type Writer interface {
	Write(batch Batch) error // durable when it returns; repeats change nothing
	Checkpoint() (topics.Checkpoint, error)
	Sweep(deleted func(schemas.UserID) bool) error
}

// SinkDeps are the dependencies of a Sink.
type SinkDeps struct {
	Kafka       topics.Kafka
	Streams     *topics.Streams
	Instance    string // name of the process, unique among the running ones
	Store       Writer // of this process
	Deleted     DeletedUsers
	DeadLetters topics.DeadLetterSender
	Metrics     *Metrics
	Now         func() time.Time
}

// Sink fills a feature store from all partitions of the topics. Each process is a separate consumer group:
// topics.InstanceGroup of features.
type Sink struct {
	cfg    Config
	deps   SinkDeps
	inputs map[string]input
	newest atomic.Int64 // arrival of the newest written action, in microseconds; 0: none
	waits  atomic.Int64 // arrival of the oldest record that is being written or could not be written; 0: none
}

// NewSink returns a sink. It returns an error if cfg is invalid.
func NewSink(cfg Config, deps SinkDeps) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature sink: %w", err)
	}
	s := &Sink{cfg: cfg, deps: deps, inputs: inputs(deps.Streams)}
	deps.Metrics.setLate(s.late)
	return s, nil
}

// late returns the age of the oldest record that is being written or could not be written. It also works while a write
// hangs or fails again and again.
func (s *Sink) late() time.Duration {
	if at := s.waits.Load(); at != 0 {
		return max(0, s.deps.Now().Sub(schemas.Micros(at).Time()))
	}
	return 0
}

// Fresh returns the arrival time of the newest action that has been written. It is unknown before the first one.
func (s *Sink) Fresh() (arrived time.Time, known bool) {
	at := s.newest.Load()
	return schemas.Micros(at).Time(), at != 0
}

// Run consumes and sweeps until ctx is done, then returns nil; it returns an error if something fails. It resumes at
// the store's applied offsets, and at the oldest record of a topic that the store has none of. It may be called again.
func (s *Sink) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.consume(ctx) })
	group.Go(func() error { return periodic.Run(ctx, s.cfg.SweepInterval, s.sweep) })
	return group.Wait()
}

func (s *Sink) sweep() error { return s.deps.Store.Sweep(s.deps.Deleted.Has) }

func (s *Sink) consume(ctx context.Context) error {
	err := topics.Follow(ctx, s.following(), s.handle)
	if _, changed := errors.AsType[*topics.ChangedTopicError](err); changed {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

func (s *Sink) following() topics.FollowConfig {
	return topics.FollowConfig{
		ConsumerConfig: topics.ConsumerConfig{
			Kafka: s.deps.Kafka, Group: topics.InstanceGroup(topics.Features, s.deps.Instance), Reader: topics.Features,
			Topics: []string{
				s.deps.Streams.ActionsEnriched.Name, s.deps.Streams.ItemFeatures.Name, s.deps.Streams.PinAttributes.Name,
			},
		},
		Checkpoint:  s.deps.Store.Checkpoint,
		ReadChanged: true, // repeats change nothing
	}
}

// handle writes records durably. It returns nil only after all are written or acknowledged as dead letters.
func (s *Sink) handle(ctx context.Context, records []*kgo.Record, to topics.Checkpoint) error {
	if len(records) == 0 {
		return s.deps.Store.Write(Batch{Checkpoint: to})
	}
	oldest := slices.MinFunc(records, func(a, b *kgo.Record) int { return cmp.Compare(topics.OriginTime(a), topics.OriginTime(b)) })
	s.waits.Store(int64(topics.OriginTime(oldest)))
	if err := s.process(ctx, records, to); err != nil {
		return err
	}
	s.waits.Store(0)
	return nil
}

func (s *Sink) process(ctx context.Context, records []*kgo.Record, to topics.Checkpoint) error {
	batch := Batch{Checkpoint: to}
	for _, r := range records {
		if err := s.inputs[r.Topic](&batch, r); err != nil {
			count := s.deps.Metrics.bad.WithLabelValues(r.Topic).Inc
			if err := topics.SendIfBad(ctx, s.deps.DeadLetters, topics.Features, r, err, count); err != nil {
				return err
			}
		}
	}
	if err := s.deps.Store.Write(batch); err != nil {
		return err
	}
	s.noteArrivals(records)
	return nil
}

// noteArrivals records how fresh the store is. Only one Run at a time calls it.
func (s *Sink) noteArrivals(records []*kgo.Record) {
	newest, first := s.newest.Load(), schemas.Micros(math.MaxInt64)
	for _, r := range records {
		if r.Topic == s.deps.Streams.ActionsEnriched.Name {
			since := topics.OriginTime(r)
			newest, first = max(newest, int64(since)), min(first, since)
		}
	}
	s.newest.Store(newest)
	if first < math.MaxInt64 {
		s.deps.Metrics.endToEnd.Observe(max(0, s.deps.Now().Sub(first.Time()).Seconds()))
	}
}

// input reads one record of a topic into a batch.
type input = func(b *Batch, r *kgo.Record) error

// inputs is the topology: each topic and the data that it adds to a batch.
func inputs(s *topics.Streams) map[string]input {
	return map[string]input{
		s.ActionsEnriched.Name: topics.Into(s.ActionsEnriched, checkAction, func(b *Batch, a *schemas.EnrichedAction, _ *kgo.Record) { b.Actions = append(b.Actions, a) }),
		s.ItemFeatures.Name:    topics.Into(s.ItemFeatures, checkCounts, func(b *Batch, c *schemas.ItemCounts, _ *kgo.Record) { b.Counts = append(b.Counts, c) }),
		s.PinAttributes.Name:   topics.Into(s.PinAttributes, checkPin, func(b *Batch, p *schemas.PinAttributes, _ *kgo.Record) { b.Pins = append(b.Pins, p) }),
	}
}

func checkAction(a *schemas.EnrichedAction) (string, error) {
	err := isUser(a.Actor)
	_, errObject := schemas.ParseID(string(a.Object))
	if a.ID == "" || len(a.ID) > schemas.MaxEventIDBytes || strings.IndexByte(a.ID, 0) >= 0 {
		err = errors.Join(err, fmt.Errorf("id of %d bytes: want 1 to %d, none of them zero", len(a.ID), schemas.MaxEventIDBytes))
	}
	if a.Verb == "" {
		err = errors.Join(err, errors.New("no verb"))
	}
	return string(a.Actor), errors.Join(err, errObject)
}

func checkCounts(c *schemas.ItemCounts) (string, error) {
	err := isPin(c.Pin)
	if c.Start%schemas.ItemStep != 0 {
		err = errors.Join(err, fmt.Errorf("start %d: want a multiple of %d", c.Start, schemas.ItemStep))
	}
	for verb, n := range c.Counts {
		if n < 0 {
			err = errors.Join(err, fmt.Errorf("count %d of %.64q: want none below 0", n, verb))
		}
	}
	return string(c.Pin), err
}

func checkPin(p *schemas.PinAttributes) (string, error) { return string(p.Pin), isPin(p.Pin) }
