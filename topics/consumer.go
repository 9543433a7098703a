package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// ConsumerConfig says who consumes what.
type ConsumerConfig struct {
	Kafka   Kafka
	Group   string
	Reader  string // whose retried records are handed over, see Retry, default Group
	Topics  []string
	MaxPoll int // records handed over at once, default 5,000
	// Quiet is how long nothing may come before the brokers are asked whether they are there, default 1 minute: the client
	// would go on trying without a word for as long as they are away, or do not let it in.
	Quiet time.Duration
}

const (
	defaultMaxPoll = 5000
	defaultQuiet   = time.Minute
	// commitTimeout bounds committing and leaving when the caller wants to stop.
	commitTimeout = 5 * time.Second
)

// Consume joins a group and hands over committed records, each partition in its order, from the oldest on when the
// group is new. It commits after handle has returned nil and before the next call, so that an offset says that the
// effect is there; records whose offset did not get committed come again, to whoever has the partition then. While
// handle runs no partition is taken away.
//
// It returns nil when ctx has ended, after a clean leave; otherwise what handle returned, or why consuming or
// committing cannot go on: also when the brokers cannot be reached, or refuse this client. It may be called again.
//
// It fails with a *ChangedTopicError if retention removed records that the group has not committed, or if a topic ends before
// the group's offsets. It fails so until these are set back. A topic that was recreated is read from its oldest record on:
// brokers remove the offsets of a topic with the topic.
func Consume(ctx context.Context, cfg ConsumerConfig, handle func(ctx context.Context, records []*kgo.Record) error) error {
	if err := cfg.checkCommitted(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("consume as %s: %w", cfg.Group, err)
	}
	return consume(ctx, cfg, func(ctx context.Context, records []*kgo.Record, _ committable) error {
		if len(records) == 0 {
			return nil
		}
		return handle(ctx, records)
	})
}

// checkCommitted fails with a *ChangedTopicError if the topics no longer have the records after the group's offsets.
func (cfg ConsumerConfig) checkCommitted(ctx context.Context) error {
	adm, err := cfg.Kafka.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	committed, err := adm.FetchOffsets(ctx, cfg.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("fetch offsets: %w", err)
	}
	marks := Marks{}
	committed.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			marks.Set(o.Topic, o.Partition, Mark{Next: o.At})
		}
	})
	_, err = resumeWithoutGap(ctx, cfg.Kafka, cfg.Topics, marks)
	return err
}

// committable are offsets of the next records, by topic and partition, as the client commits them.
type committable = map[string]map[int32]kgo.EpochOffset

// handler works records off. done is where their partitions go on; there may be no records but for markers.
type handler = func(ctx context.Context, records []*kgo.Record, done committable) error

// consume is Consume with more options.
func consume(ctx context.Context, cfg ConsumerConfig, handle handler, opts ...kgo.Opt) error {
	if cfg.Reader == "" {
		cfg.Reader = cfg.Group
	}
	if cfg.MaxPoll <= 0 {
		cfg.MaxPoll = defaultMaxPoll
	}
	if cfg.Quiet <= 0 {
		cfg.Quiet = defaultQuiet
	}
	client, err := cfg.Kafka.Client(append([]kgo.Opt{
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.Topics...),
		kgo.DisableAutoCommit(),         // only after the effect
		kgo.BlockRebalanceOnPoll(),      // what is being handled stays ours until it is committed
		kgo.KeepControlRecords(),        // markers are committed too: the lag reaches zero
		kgo.RequireStableFetchOffsets(), // an offset inside an open transaction is not yet true
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(time.Second),
		kgo.RebalanceTimeout(cfg.Kafka.rebalanceTimeout()),
	}, opts...)...)
	if err != nil {
		return fmt.Errorf("consume as %s: %w", cfg.Group, err)
	}
	defer leave(ctx, client)
	err = client.Ping(ctx)
	for {
		if err == nil {
			err = step(ctx, client, cfg, handle)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("consume as %s: %w", cfg.Group, err)
		}
		client.AllowRebalance()
	}
}

// step polls once, handles, commits.
func step(ctx context.Context, client *kgo.Client, cfg ConsumerConfig, handle handler) error {
	polling, cancel := context.WithTimeout(ctx, cfg.Quiet)
	fetches := client.PollRecords(polling, cfg.MaxPoll)
	quiet := fetches.Empty() && ctx.Err() == nil && polling.Err() != nil
	cancel()
	if quiet {
		return client.Ping(ctx)
	}
	if err := fetches.Err(); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	records, done := split(fetches, cfg.Reader)
	if len(done) == 0 {
		return nil
	}
	traced, span := received(ctx, cfg, records)
	err := handle(traced, records, done)
	tracing.End(span, err)
	if err != nil {
		return err
	}
	return commit(ctx, client, done)
}

// split returns the data records of fetches, without those that are retried for another reader, and for each partition
// the offset after its last record of any kind.
func split(fetches kgo.Fetches, reader string) ([]*kgo.Record, committable) {
	records := make([]*kgo.Record, 0, fetches.NumRecords())
	done := committable{}
	fetches.EachRecord(func(r *kgo.Record) {
		retry, retried := RetryOf(r)
		if !r.Attrs.IsControl() && !(retried && retry.IsForAnother(r.Topic, reader)) {
			records = append(records, r)
		}
		if done[r.Topic] == nil {
			done[r.Topic] = map[int32]kgo.EpochOffset{}
		}
		done[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	})
	return records, done
}

// commit also goes on for a while when ctx ends: the effect is there, and not to repeat it costs little.
func commit(ctx context.Context, client *kgo.Client, done committable) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	var failed error
	client.CommitOffsetsSync(ctx, done, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if failed = err; err == nil {
			failed = commitError(resp)
		}
	})
	if failed != nil {
		return fmt.Errorf("commit offsets: %w", failed)
	}
	return nil
}

func commitError(resp *kmsg.OffsetCommitResponse) error {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err)
			}
		}
	}
	return nil
}

// leave gives the partitions back at once, if the brokers answer in time.
func leave(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	client.AllowRebalance()
	_ = client.LeaveGroupContext(ctx) // brokers that do not answer see the session time out
	client.Close()
}
