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

// ServedTopic is the ServedLog on Kafka.
type ServedTopic struct {
	client *kgo.Client
	stream topics.Stream[schemas.Served]
}

// NewServedTopic returns a ServedTopic that publishes through client. The client comes from topics.Kafka.Client, and the
// caller closes it.
func NewServedTopic(client *kgo.Client, s *topics.Streams) *ServedTopic {
	return &ServedTopic{client: client, stream: s.Served}
}

// Publish returns Acknowledged when every in-sync replica has the record, and Failed when the record is certainly not in the
// log. It returns Unknown when ctx ends before the brokers answer, or when an answer leaves the outcome open. In that case
// the client continues to retry for at most topics.DeliveryTimeout.
func (t *ServedTopic) Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error) {
	value, err := t.stream.Encode(s)
	if err != nil {
		return schemas.Failed, fmt.Errorf("publish served %s: %w", s.ID, err)
	}
	record := &kgo.Record{Topic: t.stream.Name, Key: []byte(s.User), Value: value, Headers: topics.WithTrace(ctx, nil)}
	done := make(chan error, 1)
	// Not with ctx: when the context of a record ends, other records in the same batch fail with it. TryProduce does not
	// wait for buffer space: if the brokers are unavailable, the buffer fills up, and the answer must still be sent.
	t.client.TryProduce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return schemas.Unknown, fmt.Errorf("publish served %s: %w", s.ID, ctx.Err())
	}
	if err != nil {
		return outcomeOf(err), fmt.Errorf("publish served %s: %w", s.ID, err)
	}
	return schemas.Acknowledged, nil
}

// outcomeOf returns the outcome for an error of the client. In doubt it is Unknown.
func outcomeOf(err error) schemas.Outcome {
	for _, refused := range []error{
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
