// Package materialize writes the feed store: materialized feeds, edges, the lists of pins by followee, the current state of
// pins, and deleted users.
//
//	in    feed-entries, edges, publications, pin-cards, users-deleted
//	out   one feed store; dead-letters
//	rows  none
//
// Each store has its own consumer group, so all stores receive the same records, each with its own lag. The sink writes the
// records of a poll as one batch and then commits the offsets. After a crash between the two, it writes the batch again.
// This changes nothing, because every row of the store is keyed and timestamped. At a committed offset of the group, the
// store has all earlier records.
//
// When a user is deleted, the sink deletes all rows that the store has under that user, once. It writes no later record
// of the user, from any topic; see Env.Deleted. It also deletes the registers of edges to the user and the facets of the
// user's pins.
//
// A record that can never be written goes to the dead-letter topic, and the sink continues. If a store or a broker is
// unavailable, Run returns the error. The next Run continues with the same records.
package materialize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Config configures a Sink. See DefaultConfig.
type Config struct {
	MaxBatchRecords int `yaml:"max_batch_records" default:"5000" range:"1..100000" help:"maximum number of records, and of items of feeds, in a batch"`
}

// DefaultConfig returns the default of every field.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate returns an error if a field is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }

// Batch is the argument of Write.
type Batch = schemas.FeedBatch

// Store is a feed store. Write returns nil when the whole batch is durable. Writing a record again changes nothing, and the
// order of records does not matter. Erased and edges with Erased are exceptions: after them, no record that they delete is
// written again.
type Store interface {
	Write(ctx context.Context, b Batch) error
}

// Env holds the dependencies of a Sink.
type Env struct {
	Kafka   topics.Kafka
	Streams *topics.Streams
	Name    string // name of the store, "" for the first; determines the group, see topics.MaterializeGroup
	Store   Store
	Metrics prometheus.Registerer
	Deleted visibility.GrowingDeletedUsers // must contain all users who are deleted when Run is called
}

// Sink copies the log into one feed store.
type Sink struct {
	cfg         Config
	env         Env
	group       string
	inputs      map[string]input
	deadLetters *prometheus.CounterVec
	seconds     prometheus.Histogram
	endToEnd    prometheus.Histogram
	// inFlight is the arrival time of the oldest record that is read and not yet durable; 0: none. The lag metric uses it,
	// because it must be correct while a write hangs.
	inFlight atomic.Int64
}

// New validates the configuration and registers the metrics, which are labeled with the group.
func New(cfg Config, env Env) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	s := &Sink{cfg: cfg, env: env, group: topics.MaterializeGroup(env.Name), inputs: inputs(env.Streams, env.Deleted)}
	m := metrics.New(prometheus.WrapRegistererWith(prometheus.Labels{"group": s.group}, env.Metrics), "smartfeed_materialize_")
	s.deadLetters = m.Counters("dead_letters_total", "Input records sent to the dead-letter topic, by input topic.", "topic")
	s.seconds = m.Seconds("write_duration_seconds", "Duration of a durable write of a batch, in seconds.", 0.0005, 14) // 0.5 ms to 4 s
	const endToEnd = "Time from the arrival of the original event of the oldest record of a batch until the batch is durable, in seconds."
	s.endToEnd = m.Seconds("end_to_end_latency_seconds", endToEnd, 0.001, 16) // 1 ms to 33 s
	const lag = "Age of the oldest record that is read but not yet durable, in seconds, or 0 if there is none."
	m.Measure("lag_seconds", lag, nil, s.lag)
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	return s, nil
}

// Run writes until ctx ends, and then returns nil, or until the store, the registry or the brokers fail, and then returns
// the error. It may be called again after it has returned.
func (s *Sink) Run(ctx context.Context) error {
	publisher, err := topics.NewPublisher(s.env.Kafka, s.env.Streams)
	if err != nil {
		return fmt.Errorf("materialize: %w", err)
	}
	defer publisher.Close()
	s.inFlight.Store(0) // another process may own the partitions of records that the last run failed to write
	err = topics.Consume(ctx, topics.ConsumerConfig{
		Kafka: s.env.Kafka, Group: s.group, Topics: slices.Collect(maps.Keys(s.inputs)), MaxPoll: s.cfg.MaxBatchRecords,
	}, func(ctx context.Context, records []*kgo.Record) error {
		s.inFlight.Store(oldest(records).UnixMicro())
		err := s.process(ctx, publisher, records)
		if err == nil {
			s.inFlight.Store(0)
		}
		return err
	})
	if err == nil {
		s.inFlight.Store(0) // other processes own the partitions
	}
	if _, changed := errors.AsType[*topics.ChangedTopicError](err); changed {
		return fmt.Errorf("%w; the %s feed store lacks the lost records: copy it from the other store or a backup, stop every process "+
			"that fills this one, run \"smartfeed feed-store refill --store %s\", and start them", err, s.storeName(), s.storeName())
	}
	return err
}

// process makes the complete effect of the records durable.
func (s *Sink) process(ctx context.Context, publisher *topics.Publisher, records []*kgo.Record) error {
	batch, err := s.decode(ctx, publisher, records)
	if err != nil {
		return err
	}
	// A visit is one record with many entries. Excess entries are written before the rest, because an erasure in the
	// batch must apply to them.
	for len(batch.Entries) > s.cfg.MaxBatchRecords {
		if err := s.write(ctx, Batch{Entries: batch.Entries[:s.cfg.MaxBatchRecords]}); err != nil {
			return err
		}
		batch.Entries = batch.Entries[s.cfg.MaxBatchRecords:]
	}
	if err := s.write(ctx, batch); err != nil {
		return err
	}
	s.endToEnd.Observe(max(0, time.Since(originTime(records)).Seconds()))
	return nil
}

// write writes a batch durably.
func (s *Sink) write(ctx context.Context, batch Batch) error {
	start := time.Now()
	writing, span := tracing.Start(ctx, "feedstore write", trace.SpanKindClient, attribute.String("smartfeed.store", s.storeName()))
	err := s.env.Store.Write(writing, batch)
	tracing.End(span, err)
	if err != nil {
		return fmt.Errorf("materialize: %w", err)
	}
	s.seconds.Observe(time.Since(start).Seconds())
	return nil
}

// lag returns the age in seconds of the oldest record in flight.
func (s *Sink) lag() float64 {
	oldest := s.inFlight.Load()
	if oldest == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMicro(oldest)).Seconds())
}

// storeName returns the name of the feed store, as reads use it.
func (s *Sink) storeName() string {
	if s.env.Name == "" {
		return "primary"
	}
	return s.env.Name
}

// oldest returns the earliest arrival time of the records.
func oldest(records []*kgo.Record) time.Time {
	first := slices.MinFunc(records, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	return first.Timestamp
}

// originTime returns the earliest arrival time of the events that the records originate from.
func originTime(records []*kgo.Record) time.Time {
	first := topics.OriginTime(records[0])
	for _, r := range records[1:] {
		first = min(first, topics.OriginTime(r))
	}
	return first.Time()
}
