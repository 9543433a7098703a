package peers

import (
	"context"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Retries reports the state of the dead letters of topics, for the partitions in this process.
type Retries interface {
	RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error)
	RetriedLetters(ctx context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedLetter, error)
}

const (
	callRetryKinds = "retry-kinds"
	callRetried    = "retried"
)

type retryKindsRequest struct {
	Topic string `json:"topic"`
}

type retriedRequest struct {
	Topic string             `json:"topic"`
	Kind  string             `json:"kind"`
	State schemas.RetryState `json:"state"`
	Most  int                `json:"most"`
}

func handleRetries(mux *http.ServeMux, r Retries) {
	mux.Handle("POST "+Path+callRetryKinds, answer(func(ctx context.Context, q retryKindsRequest) ([]schemas.RetryKind, error) {
		return r.RetryKinds(ctx, q.Topic)
	}))
	mux.Handle("POST "+Path+callRetried, answer(func(ctx context.Context, q retriedRequest) ([]schemas.RetriedLetter, error) {
		return r.RetriedLetters(ctx, q.Topic, q.Kind, q.State, q.Most)
	}))
}

// RetryKinds returns the kinds of dead letters of a topic, from the owner of its partition.
func (c *Client) RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error) {
	return ask[[]schemas.RetryKind](ctx, c, callRetryKinds, c.retriesOf(topic), retryKindsRequest{topic})
}

// RetriedLetters returns the dead letters of a topic, from the owner of its partition.
func (c *Client) RetriedLetters(ctx context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedLetter, error) {
	return ask[[]schemas.RetriedLetter](ctx, c, callRetried, c.retriesOf(topic), retriedRequest{topic, kind, state, most})
}

func (c *Client) retriesOf(topic string) target {
	return target{&c.retries, topic, topics.Partition(topic, c.partitions)}
}
