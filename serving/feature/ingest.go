package feature

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Writer is what a Sink fills. *EmbeddedStore is one.
type Writer interface {
	Write(batch Batch) error // durable when it returns, repeats change nothing
	Marks() (topics.Marks, error)
	Sweep() error
}

// DeadLetters takes the records that cannot be read. *topics.Publisher is one.
type DeadLetters interface {
	// Bury returns when the dead letter is acknowledged.
	Bury(ctx context.Context, group string, r *kgo.Record, reason string) error
}

// SinkDeps are the collaborators of a Sink.
type SinkDeps struct {
	Kafka       topics.Kafka
	Streams     *topics.Streams
	Instance    string // names the process among those that run
	Store       Writer // of the process's own
	DeadLetters DeadLetters
	Metrics     *Metrics
	Now         func() time.Time
	// ActionsElsewhere says that another store has the actions: they are worked off and not written, and how late they are is
	// not measured here, see Lateness. Default false.
	ActionsElsewhere bool
}

// Sink fills a feature store from the topics, all partitions of them: each process is a consumer group by itself,
// topics.InstanceGroup of features.
type Sink struct {
	cfg      Config
	deps     SinkDeps
	inputs   map[string]input
	watchers watchers
	newest   atomic.Int64 // arrival, in microseconds, of the newest action written; 0: none
	waits    atomic.Int64 // likewise of the oldest record that is being written, or could not be; 0: none
}

// NewSink makes a sink. It fails when cfg is not valid.
func NewSink(cfg Config, deps SinkDeps) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature sink: %w", err)
	}
	s := &Sink{cfg: cfg, deps: deps, inputs: inputs(deps.Streams)}
	if !deps.ActionsElsewhere {
		deps.Metrics.tell(s.late)
	}
	return s, nil
}

// late is how long ago the oldest record arrived that is being written, or could not be: nobody else writes it. It is asked
// also while a write hangs, or fails again and again.
func (s *Sink) late() time.Duration {
	if at := s.waits.Load(); at != 0 {
		return max(0, s.deps.Now().Sub(schemas.Micros(at).Time()))
	}
	return 0
}

// Watch returns a channel that has something to receive when actions of the user have been written since the last
// receive. Call stop when done.
func (s *Sink) Watch(user schemas.UserID) (changed <-chan struct{}, stop func()) {
	return s.watchers.watch(user)
}

// Fresh returns when the newest action arrived that has been written; not known before the first one.
func (s *Sink) Fresh() (arrived time.Time, known bool) {
	at := s.newest.Load()
	return schemas.Micros(at).Time(), at != 0
}

// Run consumes and sweeps until ctx ends (nil) or something breaks (the error). It goes on where the store says, with the
// oldest records of a topic of which the store knows nothing, and may be called again.
func (s *Sink) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.consume(ctx) })
	group.Go(func() error { return s.sweep(ctx) })
	return group.Wait()
}

func (s *Sink) consume(ctx context.Context) error {
	err := topics.Follow(ctx, s.following(), s.handle)
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; stop the process and remove the directory of the feature store: it is filled from what the topics still have", err)
	}
	return err
}

func (s *Sink) following() topics.FollowConfig {
	return topics.FollowConfig{
		ConsumerConfig: topics.ConsumerConfig{
			Kafka: s.deps.Kafka, Group: topics.InstanceGroup(topics.Features, s.deps.Instance), Reader: topics.Features,
			Topics: []string{
				s.deps.Streams.ActionsEnriched.Name, s.deps.Streams.ItemFeatures.Name,
				s.deps.Streams.PinCards.Name, s.deps.Streams.PinAttributes.Name,
			},
		},
		Marks: s.deps.Store.Marks,
		Anew:  true, // repeats change nothing
	}
}

// sweep deletes what has expired, at once and then ever again.
func (s *Sink) sweep(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.SweepEvery)
	defer tick.Stop()
	for {
		if err := s.deps.Store.Sweep(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// handle makes records durable. It returns nil only when all are written or buried.
func (s *Sink) handle(ctx context.Context, records []*kgo.Record, to topics.Marks) error {
	if len(records) == 0 {
		return s.deps.Store.Write(Batch{Marks: to})
	}
	s.waits.Store(int64(oldest(records)))
	if err := s.work(ctx, records, to); err != nil {
		return err
	}
	s.waits.Store(0)
	return nil
}

// oldest is when the first of the outside events arrived that the records go back to.
func oldest(records []*kgo.Record) schemas.Micros {
	first := topics.SinceOf(records[0])
	for _, r := range records[1:] {
		first = min(first, topics.SinceOf(r))
	}
	return first
}

func (s *Sink) work(ctx context.Context, records []*kgo.Record, to topics.Marks) error {
	batch := Batch{Marks: to}
	for _, r := range records {
		if err := s.inputs[r.Topic](&batch, r); err != nil {
			if err := s.bury(ctx, r, err); err != nil {
				return err
			}
		}
	}
	written := batch
	if s.deps.ActionsElsewhere {
		written.Actions = nil
	}
	if err := s.deps.Store.Write(written); err != nil {
		return err
	}
	s.noteArrivals(records)
	s.measure(batch)
	s.watchers.wake(batch.Actions)
	return nil
}

// noteArrivals notes how far the store is. One Run at a time calls it.
func (s *Sink) noteArrivals(records []*kgo.Record) {
	newest, first := s.newest.Load(), schemas.Micros(math.MaxInt64)
	for _, r := range records {
		if r.Topic == s.deps.Streams.ActionsEnriched.Name {
			since := topics.SinceOf(r)
			newest, first = max(newest, int64(since)), min(first, since)
		}
	}
	s.newest.Store(newest)
	if first < math.MaxInt64 && !s.deps.ActionsElsewhere {
		s.deps.Metrics.since.Observe(max(0, s.deps.Now().Sub(first.Time()).Seconds()))
	}
}

// bury sends a bad record to the dead letters; any other failure it returns.
func (s *Sink) bury(ctx context.Context, r *kgo.Record, err error) error {
	var bad *schemas.BadRecordError
	if !errors.As(err, &bad) {
		return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	s.deps.Metrics.bad.WithLabelValues(r.Topic).Inc()
	return s.deps.DeadLetters.Bury(ctx, topics.Features, r, bad.Reason)
}

func (s *Sink) measure(b Batch) {
	rows := s.deps.Metrics.rows
	rows.WithLabelValues(s.deps.Streams.ActionsEnriched.Name).Add(float64(len(b.Actions)))
	rows.WithLabelValues(s.deps.Streams.ItemFeatures.Name).Add(float64(len(b.Counts)))
	rows.WithLabelValues(s.deps.Streams.PinCards.Name).Add(float64(len(b.Cards)))
	rows.WithLabelValues(s.deps.Streams.PinAttributes.Name).Add(float64(len(b.Pins)))
	kept := keptAfter(schemas.MicrosOf(s.deps.Now()))
	for _, a := range b.Actions {
		if floor(a.Timestamp) <= kept {
			s.deps.Metrics.expired.Inc()
		}
	}
}

// input reads one record of a topic into a batch.
type input = func(b *Batch, r *kgo.Record) error

// inputs is the whole topology: each topic with what of it is written.
func inputs(s *topics.Streams) map[string]input {
	return map[string]input{
		s.ActionsEnriched.Name: topics.Into(s.ActionsEnriched, checkAction, func(b *Batch, a *schemas.EnrichedAction, _ *kgo.Record) { b.Actions = append(b.Actions, a) }),
		s.ItemFeatures.Name:    topics.Into(s.ItemFeatures, checkCounts, func(b *Batch, c *schemas.ItemCounts, _ *kgo.Record) { b.Counts = append(b.Counts, c) }),
		s.PinCards.Name:        topics.Into(s.PinCards, checkCard, func(b *Batch, c *schemas.Card, _ *kgo.Record) { b.Cards = append(b.Cards, c) }),
		s.PinAttributes.Name:   topics.Into(s.PinAttributes, checkPin, func(b *Batch, p *schemas.PinAttributes, _ *kgo.Record) { b.Pins = append(b.Pins, p) }),
	}
}

func checkAction(a *schemas.EnrichedAction) (string, error) {
	_, err := schemas.ParseUserID(string(a.Actor))
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
	_, err := schemas.ParsePinID(string(c.Pin))
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

func checkCard(c *schemas.Card) (string, error) {
	_, err := schemas.ParsePinID(string(c.Pin))
	return string(c.Pin), err
}

func checkPin(p *schemas.PinAttributes) (string, error) {
	_, err := schemas.ParsePinID(string(p.Pin))
	return string(p.Pin), err
}
