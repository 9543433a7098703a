package topics

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// gathered holds polled records that have no effect yet. Only flush clears it, so no record is committed before its effect.
type gathered struct {
	records []*kgo.Record
	done    committable
	bytes   int       // of their keys and values
	since   time.Time // of the first poll; zero: there is none
}

// wait returns the maximum duration of the next poll. Partitions can be revoked meanwhile, so it reads nothing that drop changes.
func (g *gathered) wait(cfg ConsumerConfig) time.Duration {
	if g.since.IsZero() {
		return cfg.Quiet
	}
	return min(cfg.Quiet, time.Until(g.since.Add(cfg.MaxAge)))
}

// add adds the data records of fetches without retries for other readers. For each partition it also adds the offset after
// the last record of any kind.
func (g *gathered) add(fetches kgo.Fetches, reader string) {
	g.records = slices.Grow(g.records, fetches.NumRecords())
	fetches.EachRecord(func(r *kgo.Record) {
		if g.since.IsZero() {
			g.since = time.Now()
		}
		retry, retried := RetryOf(r)
		if !r.Attrs.IsControl() && !(retried && retry.IsForAnother(r.Topic, reader)) {
			g.records = append(g.records, r)
			g.bytes += len(r.Key) + len(r.Value)
		}
		g.done.Set(r.Topic, r.Partition, kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1})
	})
}

// drop removes the records of revoked partitions. The next owner reads them again.
func (g *gathered) drop(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	for topic, partitions := range revoked {
		for _, p := range partitions {
			delete(g.done[topic], p)
		}
		if len(g.done[topic]) == 0 {
			delete(g.done, topic)
		}
	}
	g.records = slices.DeleteFunc(g.records, func(r *kgo.Record) bool {
		lost := slices.Contains(revoked[r.Topic], r.Partition)
		if lost {
			g.bytes -= len(r.Key) + len(r.Value)
		}
		return lost
	})
}

// flush calls handle, and commits.
func (g *gathered) flush(ctx context.Context, client *kgo.Client, cfg ConsumerConfig, handle handler) error {
	if len(g.done) > 0 {
		traced, span := startReceive(ctx, cfg, g.records)
		err := handle(traced, g.records, g.done)
		tracing.End(span, err)
		if err == nil {
			err = commit(ctx, client, g.done)
		}
		if err != nil {
			return err
		}
	}
	*g = gathered{done: committable{}}
	return nil
}

// finish is flush after ctx is canceled.
func (g *gathered) finish(ctx context.Context, client *kgo.Client, cfg ConsumerConfig, handle handler) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := g.flush(ctx, client, cfg, handle); err != nil {
		return fmt.Errorf("consume as %s: %w", cfg.Group, err)
	}
	return nil
}
