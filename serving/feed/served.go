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

// NewServedTopic publishes through client, which topics.Kafka.Client made and the caller closes.
func NewServedTopic(client *kgo.Client, s *topics.Streams) *ServedTopic {
	return &ServedTopic{client: client, stream: s.Served}
}

// Publish returns Acknowledged when every in-sync replica has the record; Failed when the record is certain not to be
// in the log; and Unknown when ctx ends before the brokers have answered, or an answer leaves it open. The client then
// goes on trying to deliver it, for at most topics.DeliveryTimeout.
func (t *ServedTopic) Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error) {
	value, err := t.stream.Encode(s)
	if err != nil {
		return schemas.Failed, fmt.Errorf("publish served %s: %w", s.ID, err)
	}
	record := &kgo.Record{Topic: t.stream.Name, Key: []byte(s.User), Value: value, Headers: topics.WithTrace(ctx, nil)}
	done := make(chan error, 1)
	// Not with ctx: a record whose context ends takes those of other users in the same batch with it. And never
	// waiting for room: with the brokers away the buffer fills, and the answer has to go out.
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

// outcomeOf says what an error of the client means for the record. In doubt it is Unknown.
func outcomeOf(err error) schemas.Outcome {
	for _, refused := range []error{
		kgo.ErrMaxBuffered,   // never left the client
		kgo.ErrRecordTimeout, // an idempotent client gives up only what it has not sent, or knows to be refused
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord,
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.UnknownTopicOrPartition,
	} {
		if errors.Is(err, refused) {
			return schemas.Failed
		}
	}
	return schemas.Unknown
}
