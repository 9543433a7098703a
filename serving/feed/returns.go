package feed

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// ReturnTopic is the ReturnLog on Kafka.
type ReturnTopic struct {
	client *kgo.Client
	stream topics.Stream[schemas.Return]
}

// NewReturnTopic returns a ReturnTopic that publishes through client. The client comes from topics.Kafka.Client, and the
// caller closes it.
func NewReturnTopic(client *kgo.Client, s *topics.Streams) *ReturnTopic {
	return &ReturnTopic{client: client, stream: s.Returns}
}

// Announce implements ReturnLog. If ctx ends first, the client continues to retry for at most topics.DeliveryTimeout. A late
// or repeated announcement does no harm.
func (t *ReturnTopic) Announce(ctx context.Context, r *schemas.Return) error {
	value, err := t.stream.Encode(r)
	if err != nil {
		return fmt.Errorf("announce %s: %w", r.User, err)
	}
	done := make(chan error, 1)
	record := &kgo.Record{Topic: t.stream.Name, Key: []byte(r.User), Value: value, Headers: topics.WithTrace(ctx, nil)}
	// As in ServedTopic.Publish: without a context that ends, and without waiting for buffer space.
	t.client.TryProduce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("announce %s: %w", r.User, err)
	}
	return nil
}
