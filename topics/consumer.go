package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumerConfig configures Consume.
type ConsumerConfig struct {
	Kafka   Kafka
	Group   string
	Reader  string // the reader for which retried records are delivered, see Retry; default Group
	Topics  []string
	MaxPoll int // maximum number of records per poll, default 5,000
	// MaxAge, unless 0, makes Consume gather the records of many polls. It passes them to handle when the first has waited for
	// MaxAge, when their keys and values have at least MaxBytes, and when ctx is canceled.
	MaxAge   time.Duration
	MaxBytes int
	// Quiet is the time without records after which the consumer pings the brokers, default 1 minute. Without the ping, the
	// client would retry silently while the brokers are unavailable or refuse it.
	Quiet time.Duration
}

const (
	defaultMaxPoll = 5000
	defaultQuiet   = time.Minute
	// commitTimeout bounds committing, and bounds leaving the group, after ctx has been canceled.
	commitTimeout = 5 * time.Second
	// coordinatorTimeout bounds the wait for a group coordinator, and coordinatorPoll is the time between two requests.
	coordinatorTimeout = 30 * time.Second
	coordinatorPoll    = 100 * time.Millisecond
)

// Consume joins a group and passes committed records to handle, in order within each partition. A new group starts at the
// oldest record. Consume commits after handle has returned nil and before the next call, so a committed offset means that
// the effect exists. Records whose offset was not committed are delivered again, to the current owner of the partition. No
// partition is revoked while handle runs.
//
// Consume returns nil when ctx is canceled, after it has left the group, unless the last gathered records fail. Otherwise it
// returns the error of handle, of consuming or of committing, for example if brokers are unreachable or refuse this client.
// It may be called again.
//
// It returns a *ChangedTopicError if retention removed records that the group has not committed, or if a topic ends before
// the group's offsets. The error persists until the offsets are reset. A recreated topic is read from its oldest record,
// because brokers delete the offsets of a topic with the topic.
func Consume(ctx context.Context, cfg ConsumerConfig, handle func(ctx context.Context, records []*kgo.Record) error) error {
	if err := cfg.checkCommitted(ctx); err != nil {
		return unlessCanceled(ctx, "consume as "+cfg.Group, err)
	}
	return consume(ctx, cfg, func(ctx context.Context, records []*kgo.Record, _ committable) error {
		if len(records) == 0 {
			return nil
		}
		return handle(ctx, records)
	})
}

// checkCommitted returns a *ChangedTopicError if the topics no longer have the records after the group's offsets.
func (cfg ConsumerConfig) checkCommitted(ctx context.Context) error {
	adm, err := cfg.Kafka.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	committed, err := fetchOffsets(ctx, adm, cfg.Group)
	if err != nil {
		return err
	}
	checkpoint := Checkpoint{}
	committed[cfg.Group].Fetched.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			checkpoint.Set(o.Topic, o.Partition, PartitionCheckpoint{Next: o.At})
		}
	})
	_, err = resume(ctx, cfg.Kafka, cfg.Topics, checkpoint, true)
	return err
}

// fetchOffsets returns the committed offsets of groups, which need not exist, or the first error of a group. It waits up to
// coordinatorTimeout for a coordinator: a cluster that never had a group first creates the topic that stores the offsets.
func fetchOffsets(ctx context.Context, adm *kadm.Client, groups ...string) (kadm.FetchOffsetsResponses, error) {
	ctx, cancel := context.WithTimeout(ctx, coordinatorTimeout)
	defer cancel()
	return backoff.Retry(ctx, func() (kadm.FetchOffsetsResponses, error) {
		all := adm.FetchManyOffsets(ctx, groups...)
		for group, fetched := range all {
			if fetched.Err == nil || errors.Is(fetched.Err, kerr.GroupIDNotFound) {
				continue
			}
			err := fmt.Errorf("fetch offsets of %s: %w", group, fetched.Err)
			if !errors.Is(err, kerr.CoordinatorNotAvailable) {
				err = backoff.Permanent(err)
			}
			return nil, err
		}
		return all, nil
	}, backoff.WithBackOff(backoff.NewConstantBackOff(coordinatorPoll)), backoff.WithMaxElapsedTime(coordinatorTimeout))
}

// committable holds the offset of the next record of each partition, as the client commits it.
type committable = ByPartition[kgo.EpochOffset]

// handler processes records. done holds the next offset of each of their partitions. If only transaction markers were read,
// records is empty.
type handler = func(ctx context.Context, records []*kgo.Record, done committable) error

// consume is Consume with a handler that receives the offsets, and with further client options.
func consume(ctx context.Context, cfg ConsumerConfig, handle handler, opts ...kgo.Opt) error {
	cfg.Reader = cmp.Or(cfg.Reader, cfg.Group)
	cfg.MaxPoll, cfg.Quiet = cmp.Or(cfg.MaxPoll, defaultMaxPoll), cmp.Or(cfg.Quiet, defaultQuiet)
	g := &gathered{done: committable{}}
	client, err := cfg.Kafka.Client(append([]kgo.Opt{
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.Topics...),
		kgo.DisableAutoCommit(),         // commit only after the effect
		kgo.BlockRebalanceOnPoll(),      // the partitions of polled records stay assigned until the records are committed
		kgo.KeepControlRecords(),        // markers are committed too, so that the lag reaches zero
		kgo.RequireStableFetchOffsets(), // an offset inside an open transaction is not final
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(2 * time.Second), // a third of the session timeout, as Kafka recommends
		kgo.RebalanceTimeout(cfg.Kafka.rebalanceTimeout()),
		kgo.OnPartitionsRevoked(g.drop),
		kgo.OnPartitionsLost(g.drop),
	}, opts...)...)
	if err != nil {
		return fmt.Errorf("consume as %s: %w", cfg.Group, err)
	}
	defer leave(ctx, client)
	for err = client.Ping(ctx); err == nil; err = step(ctx, client, cfg, g, handle) {
		client.AllowRebalance()
	}
	if ctx.Err() != nil && cfg.MaxAge > 0 { // the last poll still blocks rebalances
		return g.finish(ctx, client, cfg, handle)
	}
	return unlessCanceled(ctx, "consume as "+cfg.Group, err)
}

// unlessCanceled returns the error of an operation, or nil if the operation failed because ctx is canceled.
func unlessCanceled(ctx context.Context, operation string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// step polls once. If the gathered records are to wait no longer, it calls handle and commits.
func step(ctx context.Context, client *kgo.Client, cfg ConsumerConfig, g *gathered, handle handler) error {
	polling, cancel := context.WithTimeout(ctx, g.wait(cfg))
	fetches := client.PollRecords(polling, cfg.MaxPoll)
	quiet := fetches.Empty() && ctx.Err() == nil && polling.Err() != nil
	cancel()
	var err error
	if quiet {
		err = client.Ping(ctx)
	} else if err = fetches.Err(); err != nil {
		err = fmt.Errorf("poll: %w", err)
	}
	if err != nil || len(fetches) == 0 { // without fetches, rebalances are not blocked
		return err
	}
	g.add(fetches, cfg.Reader)
	if g.bytes < cfg.MaxBytes && time.Since(g.since) < cfg.MaxAge {
		return nil
	}
	return g.flush(ctx, client, cfg, handle)
}

// commit continues for up to commitTimeout after ctx is canceled. The effect exists already, and committing avoids a
// repeat.
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

// leave returns the partitions immediately, if the brokers answer within commitTimeout.
func leave(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	client.AllowRebalance()
	_ = client.LeaveGroupContext(ctx) // without an answer, the session times out
	client.Close()
}
