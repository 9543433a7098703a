package app

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// deadLetters gives the API access to the dead letters of a cluster.
type deadLetters struct {
	kafka   topics.Kafka
	streams *topics.Streams
	states  peers.Retries
	retries *semaphore.Weighted // one at a time: two would request each retry twice
}

// List returns the newest dead letters, the newest last.
func (d deadLetters) List(ctx context.Context, limit int) ([]api.DeadLetter, error) {
	return ops.ListDeadLetters(ctx, d.kafka, d.streams, limit)
}

// Retry requests an immediate retry of the dead letters since the last call.
func (d deadLetters) Retry(ctx context.Context, operator string) (api.Retried, error) {
	if err := d.retries.Acquire(ctx, 1); err != nil {
		return api.Retried{}, err
	}
	defer d.retries.Release(1)
	return ops.RetryDeadLetters(ctx, d.kafka, d.streams, operator)
}

// Limit sets the retry rate for dead letters of a scope.
func (d deadLetters) Limit(ctx context.Context, limit schemas.RetryLimit, operator string) error {
	return ops.LimitRetries(ctx, d.kafka, d.streams, limit, operator)
}

// Kinds returns the kinds of all dead letters, sorted by name.
func (d deadLetters) Kinds(ctx context.Context) ([]schemas.RetryKind, error) {
	names := d.topics("")
	list, err := topics.Gather(ctx, len(names), func(ctx context.Context, i int) ([]schemas.RetryKind, error) {
		return d.states.RetryKinds(ctx, names[i])
	})
	slices.SortFunc(list, func(a, b schemas.RetryKind) int { return strings.Compare(a.Kind, b.Kind) })
	return list, err
}

// Retries returns at most limit dead letters of a kind ("": all) in a state ("": all), the latest state changes first.
func (d deadLetters) Retries(ctx context.Context, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedDeadLetter, error) {
	names := d.topics(kind)
	list, err := topics.Gather(ctx, len(names), func(ctx context.Context, i int) ([]schemas.RetriedDeadLetter, error) {
		return d.states.RetriedDeadLetters(ctx, names[i], kind, state, limit)
	})
	slices.SortStableFunc(list, func(a, b schemas.RetriedDeadLetter) int { return int(b.Since - a.Since) })
	return list[:min(limit, len(list))], err
}

// topics returns the topics whose records can become dead letters of a kind ("": any).
func (d deadLetters) topics(kind string) []string {
	if topic, _, ok := strings.Cut(kind, "/"); ok {
		return []string{topic}
	}
	return topics.Names(topics.Catalogue(topics.Profile{}))
}
