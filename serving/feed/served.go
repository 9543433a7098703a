package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Log publishes the records of visits to Kafka. It implements ServedLog and ActivityLog.
type Log struct {
	client  *kgo.Client
	streams *topics.Streams
}

// NewLog returns a Log that publishes through client. The client comes from topics.Kafka.Client, and the caller closes it.
func NewLog(client *kgo.Client, s *topics.Streams) *Log { return &Log{client, s} }

// Publish returns Acknowledged when every in-sync replica has the record, and Failed when the record is certainly not in the
// log. It returns Unknown when ctx ends before the brokers answer, or when an answer leaves the outcome open. In that case
// the client continues to retry for at most topics.DeliveryTimeout.
func (l *Log) Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error) {
	if err := publish(ctx, l.client, l.streams.Served, s.User, s); err != nil {
		return outcomeOf(err), fmt.Errorf("publish served %s: %w", s.ID, err)
	}
	return schemas.Acknowledged, nil
}

// Announce implements ActivityLog. If ctx ends first, the client continues to retry for at most topics.DeliveryTimeout. A late
// or repeated announcement does no harm.
func (l *Log) Announce(ctx context.Context, r *schemas.UserActivity) error {
	if err := publish(ctx, l.client, l.streams.UserActivity, r.User, r); err != nil {
		return fmt.Errorf("announce %s: %w", r.User, err)
	}
	return nil
}

// errEncode is returned for a record that has no encoding: it was not sent.
var errEncode = errors.New("encode")

// publish sends a record with a user as the key and waits until the brokers acknowledge it or ctx ends.
func publish[T any](ctx context.Context, client *kgo.Client, stream topics.Stream[T], user schemas.UserID, rec *T) error {
	value, err := stream.Encode(rec)
	if err != nil {
		return fmt.Errorf("%w: %w", errEncode, err)
	}
	record := &kgo.Record{Topic: stream.Name, Key: []byte(user), Value: value, Headers: topics.WithTrace(ctx, nil)}
	done := make(chan error, 1)
	// Not with ctx: when the context of a record ends, other records in the same batch fail with it. TryProduce does not
	// wait for buffer space: if the brokers are unavailable, the buffer fills up, and the answer must still be sent.
	client.TryProduce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outcomeOf returns the outcome for an error of publish. In doubt it is Unknown.
func outcomeOf(err error) schemas.Outcome {
	for _, refused := range []error{
		errEncode,
		kgo.ErrMaxBuffered,   // never left the client
		kgo.ErrRecordTimeout, // an idempotent client expires only records that it has not sent or that the broker has rejected
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord,
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.UnknownTopicOrPartition,
	} {
		if errors.Is(err, refused) {
			return schemas.Failed
		}
	}
	return schemas.Unknown
}
