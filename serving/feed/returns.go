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

// NewReturnTopic publishes through client, which topics.Kafka.Client made and the caller closes.
func NewReturnTopic(client *kgo.Client, s *topics.Streams) *ReturnTopic {
	return &ReturnTopic{client: client, stream: s.Returns}
}

// Announce implements ReturnLog. When ctx ends first the client goes on trying, for at most topics.DeliveryTimeout: a
// return that is told late, or twice, does no harm.
func (t *ReturnTopic) Announce(ctx context.Context, r *schemas.Return) error {
	value, err := t.stream.Encode(r)
	if err != nil {
		return fmt.Errorf("announce %s: %w", r.User, err)
	}
	done := make(chan error, 1)
	record := &kgo.Record{Topic: t.stream.Name, Key: []byte(r.User), Value: value, Headers: topics.WithTrace(ctx, nil)}
	// As a Served: never with a context that ends, and never waiting for room.
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
