// Package materialize writes the feed store: frozen feeds, who may see what, the lists of what a followee published,
// the present state of pins, and who is deleted.
//
//	in    feed-entries, edges, publications, pin-cards, users-deleted
//	out   one feed store; dead-letters
//	rows  none
//
// It is one consumer group per store, so the log itself keeps several stores in step: each gets everything, as late as
// it must. What a poll brings is written as one batch, then the offsets are committed; a crash between the two writes
// the batch again, which changes nothing, because every row of the store is keyed and timed. So an offset of the group
// says that the store has everything before it.
//
// Of a deleted user everything the store keeps under them is taken away, once, and of what comes behind nothing is written,
// whichever topic it comes by: see Env.Deleted. Of an edge to them the register goes, of their pins the facets.
//
// A record that can never be written goes to the dead letters, and the rest goes on. A store or a broker that is away
// ends Run with the error; run again, it goes on from the same records.
package materialize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Config of every Sink. See DefaultConfig.
type Config struct {
	// MaxPoll is how many records, and how many entries of feeds, are written as one batch at most, default 5,000, 1 to 100,000.
	MaxPoll int `yaml:"max_poll"`
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config { return Config{MaxPoll: 5000} }

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error { return bounds.Within("max_poll", c.MaxPoll, 1, 100_000) }

// Batch is what one Write brings. It is an alias of an unnamed struct, so that a store may declare the same struct
// under a name of its own and need not import this package.
type Batch = struct {
	Entries      []schemas.FeedEntry
	Edges        []schemas.Edge
	Publications []schemas.Publication
	Cards        []schemas.Card
	Deleted      []schemas.DeletedUser
	Erased       []schemas.DeletedUser // take away what is there of these users; nothing of it is younger than Time
}

// Store is a feed store. Write returns nil when the whole batch is durable. To write a record again changes nothing,
// and the order of records makes no difference, but for Erased and for edges that are: behind them nothing is written again
// of what they take away.
type Store interface {
	Write(ctx context.Context, b Batch) error
}

// Env are the collaborators of a Sink.
type Env struct {
	Kafka   topics.Kafka
	Streams *topics.Streams
	Name    string // of the store, "" of the first: it decides the group, see topics.MaterializeGroup
	Store   Store
	Metrics prometheus.Registerer
	Deleted DeletedUsers // must know all that were known when Run is called
}

// DeletedUsers knows who is gone for good, and is told of whom it may not have heard yet.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	Note(user schemas.UserID, at schemas.Micros)
}

// Sink copies the log into one feed store.
type Sink struct {
	cfg         Config
	env         Env
	group       string
	inputs      map[string]input
	deadLetters *prometheus.CounterVec
	written     *prometheus.CounterVec
	seconds     prometheus.Histogram
	since       prometheus.Histogram
	hand        *hand
}

// New checks the configuration and registers the metrics, which carry the name of the group.
func New(cfg Config, env Env) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	s := &Sink{
		cfg: cfg, env: env, group: topics.MaterializeGroup(env.Name), inputs: inputs(env.Streams, env.Deleted), hand: new(hand),
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_materialize_records_total", Help: "Rows and removals written to the feed store, by the topic that they come from.",
		}, []string{"topic"}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_materialize_dead_letters_total", Help: "Records that can never be written.",
		}, []string{"topic"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "smartfeed_materialize_write_seconds", Help: "Time of one durable write.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), // 0.5 ms to 4 s
		}),
		since: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "smartfeed_materialize_since_seconds", Help: "Time from when the outside event arrived that the oldest record of a write goes back to, to when it was durable.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16), // 1 ms to 33 s
		}),
	}
	behind := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "smartfeed_materialize_behind_seconds", Help: "Age of the oldest record that is being written, or could not be; 0 when nothing is.",
	}, s.behind)
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"group": s.group}, env.Metrics)
	for _, c := range []prometheus.Collector{s.written, s.deadLetters, s.seconds, s.since, behind} {
		if err := labelled.Register(c); err != nil {
			return nil, fmt.Errorf("materialize: register metrics: %w", err)
		}
	}
	return s, nil
}

// Run writes until ctx ends (nil), or until the store, the registry or the brokers fail (the error). It may be called
// again after it returned, not while it runs.
func (s *Sink) Run(ctx context.Context) error {
	producer, err := s.env.Kafka.Client()
	if err != nil {
		return fmt.Errorf("materialize: %w", err)
	}
	defer producer.Close()
	var names []string
	for name := range s.inputs {
		names = append(names, name)
	}
	s.hand.begin(time.Now())
	err = topics.Consume(ctx, topics.ConsumerConfig{
		Kafka: s.env.Kafka, Group: s.group, Topics: names, MaxPoll: s.cfg.MaxPoll,
	}, func(ctx context.Context, records []*kgo.Record) error {
		return s.handle(ctx, producer, records)
	})
	if err == nil {
		s.hand.end() // others have the partitions
	}
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; the %s feed store lacks what they said: copy it from the other store or a backup, stop every process "+
			"that fills this one, run \"smartfeed feedstore refill --store %s\", and start them", err, s.storeName(), s.storeName())
	}
	return err
}

// handle is work, and records how long what it works on has waited.
func (s *Sink) handle(ctx context.Context, producer *kgo.Client, records []*kgo.Record) error {
	s.hand.take(oldest(records))
	if err := s.work(ctx, producer, records); err != nil {
		s.hand.fail(time.Now())
		return err
	}
	s.hand.end()
	return nil
}

// work makes the records' whole effect durable.
func (s *Sink) work(ctx context.Context, producer *kgo.Client, records []*kgo.Record) error {
	batch, bad, err := sift(s.inputs, records)
	if err != nil {
		return err
	}
	if err := s.bury(ctx, producer, bad); err != nil {
		return err
	}
	// A visit is one record of many entries. Those that are too many go before the rest: what is erased with it stays so.
	for len(batch.Entries) > s.cfg.MaxPoll {
		if err := s.write(ctx, Batch{Entries: batch.Entries[:s.cfg.MaxPoll]}); err != nil {
			return err
		}
		batch.Entries = batch.Entries[s.cfg.MaxPoll:]
	}
	if err := s.write(ctx, batch); err != nil {
		return err
	}
	s.since.Observe(max(0, time.Since(begun(records)).Seconds()))
	return nil
}

// write makes a batch durable.
func (s *Sink) write(ctx context.Context, batch Batch) error {
	start := time.Now()
	writing, span := tracing.Start(ctx, "feedstore write", trace.SpanKindClient, attribute.String("smartfeed.store", s.storeName()))
	err := s.env.Store.Write(writing, batch)
	tracing.End(span, err)
	if err != nil {
		return fmt.Errorf("materialize: %w", err)
	}
	s.seconds.Observe(time.Since(start).Seconds())
	s.count(batch)
	return nil
}

// behind is the age in seconds of what is in hand.
func (s *Sink) behind() float64 { return s.hand.age(time.Now()).Seconds() }

// storeName is that of the feed store, as reads name it.
func (s *Sink) storeName() string {
	if s.env.Name == "" {
		return "primary"
	}
	return s.env.Name
}

// oldest is when the first of the records arrived.
func oldest(records []*kgo.Record) time.Time {
	first := slices.MinFunc(records, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	return first.Timestamp
}

// begun is when the first of the outside events arrived that the records go back to.
func begun(records []*kgo.Record) time.Time {
	first := topics.SinceOf(records[0])
	for _, r := range records[1:] {
		first = min(first, topics.SinceOf(r))
	}
	return first.Time()
}

// count adds what was written to the metrics.
func (s *Sink) count(b Batch) {
	streams := s.env.Streams
	for topic, n := range map[string]int{
		streams.FeedEntries.Name: len(b.Entries), streams.Edges.Name: len(b.Edges), streams.PinCards.Name: len(b.Cards),
		streams.Publications.Name: len(b.Publications), streams.UsersDeleted.Name: len(b.Deleted),
	} {
		s.written.WithLabelValues(topic).Add(float64(n))
	}
}
