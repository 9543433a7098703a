package product

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/topics"
)

// deadLetters are those of a broker, as the API asks for them.
type deadLetters struct {
	kafka   topics.Kafka
	streams *topics.Streams
	retries *semaphore.Weighted // one at a time: two would publish each letter twice
}

func newDeadLetters(k topics.Kafka, s *topics.Streams) deadLetters {
	return deadLetters{kafka: k, streams: s, retries: semaphore.NewWeighted(1)}
}

// List returns the newest letters, the newest last.
func (d deadLetters) List(ctx context.Context, limit int) ([]topics.Letter, error) {
	return topics.ListDeadLetters(ctx, d.kafka, d.streams, limit)
}

// Retry publishes what has not been retried yet.
func (d deadLetters) Retry(ctx context.Context) (topics.Retried, error) {
	if err := d.retries.Acquire(ctx, 1); err != nil {
		return topics.Retried{}, err
	}
	defer d.retries.Release(1)
	return topics.RetryDeadLetters(ctx, d.kafka, d.streams)
}
