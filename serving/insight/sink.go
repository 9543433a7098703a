package insight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Sink fills a store from the topic, as the consumer group insights.
type Sink struct {
	cfg    Config
	kafka  topics.Kafka
	stream topics.Stream[schemas.EnrichedAction]
	store  *Store
	now    func() time.Time
}

// NewSink makes a sink. It fails when cfg is not valid.
func NewSink(cfg Config, kafka topics.Kafka, stream topics.Stream[schemas.EnrichedAction], store *Store, now func() time.Time) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("insight sink: %w", err)
	}
	return &Sink{cfg: cfg, kafka: kafka, stream: stream, store: store, now: now}, nil
}

// Run consumes and sweeps until ctx ends (nil) or something breaks (the error). It may be called again.
func (s *Sink) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		cfg := topics.ConsumerConfig{Kafka: s.kafka, Group: topics.Insights, Topics: []string{s.stream.Name}}
		return topics.Consume(ctx, cfg, s.handle)
	})
	group.Go(func() error { return s.sweep(ctx) })
	return group.Wait()
}

func (s *Sink) sweep(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.SweepEvery)
	defer tick.Stop()
	for {
		if err := s.store.Sweep(s.now(), s.cfg.SequenceDays); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// handle makes records durable. What cannot be read says nothing here: the group features, which reads the same topic,
// sends it to the dead letters.
func (s *Sink) handle(_ context.Context, records []*kgo.Record) error {
	applied := make([]Applied, len(records))
	for i, r := range records {
		a, err := s.stream.Decode(r.Value)
		var bad *schemas.BadRecordError
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		applied[i] = Applied{r.Partition, r.Offset, a}
	}
	return s.store.Apply(applied)
}
