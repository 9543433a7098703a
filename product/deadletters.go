package product

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/operate"
)

// deadLetters are those of a broker, as the API asks for them.
type deadLetters struct {
	kafka   topics.Kafka
	streams *topics.Streams
	states  peers.Retries
	retries *semaphore.Weighted // one at a time: two would order each letter twice
}

func newDeadLetters(k topics.Kafka, s *topics.Streams, states peers.Retries) deadLetters {
	return deadLetters{kafka: k, streams: s, states: states, retries: semaphore.NewWeighted(1)}
}

// List returns the newest letters, the newest last.
func (d deadLetters) List(ctx context.Context, limit int) ([]operate.Letter, error) {
	return operate.ListDeadLetters(ctx, d.kafka, d.streams, limit)
}

// Retry has what came since the last call retried at once.
func (d deadLetters) Retry(ctx context.Context, operator string) (operate.Retried, error) {
	if err := d.retries.Acquire(ctx, 1); err != nil {
		return operate.Retried{}, err
	}
	defer d.retries.Release(1)
	return operate.RetryDeadLetters(ctx, d.kafka, d.streams, operator)
}

// Limit sets how fast dead letters of a scope are retried.
func (d deadLetters) Limit(ctx context.Context, limit schemas.RetryLimit, operator string) error {
	return operate.LimitRetries(ctx, d.kafka, d.streams, limit, operator)
}

// Kinds returns the kinds of all letters, by name.
func (d deadLetters) Kinds(ctx context.Context) ([]schemas.RetryKind, error) {
	list, err := ofTopics(ctx, d.topics(""), d.states.RetryKinds)
	slices.SortFunc(list, func(a, b schemas.RetryKind) int { return strings.Compare(a.Kind, b.Kind) })
	return list, err
}

// Retries returns letters of a kind (all: "") in a state (all: ""), at most limit, who came into it last first.
func (d deadLetters) Retries(ctx context.Context, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedLetter, error) {
	list, err := ofTopics(ctx, d.topics(kind), func(ctx context.Context, topic string) ([]schemas.RetriedLetter, error) {
		return d.states.RetriedLetters(ctx, topic, kind, state, limit)
	})
	slices.SortStableFunc(list, func(a, b schemas.RetriedLetter) int { return int(b.Since - a.Since) })
	return list[:min(limit, len(list))], err
}

// topics returns those that letters of a kind can have come from.
func (d deadLetters) topics(kind string) []string {
	if topic, _, ok := strings.Cut(kind, "/"); ok {
		return []string{topic}
	}
	var names []string
	for _, t := range topics.Catalogue(topics.Profile{}) {
		names = append(names, t.Name)
	}
	return names
}

// asked at once, so that one look does not take all connections to a peer.
const topicsAtOnce = 8

// ofTopics asks for each topic, and returns the answers in the topics' order.
func ofTopics[T any](ctx context.Context, names []string, ask func(context.Context, string) ([]T, error)) ([]T, error) {
	answers := make([][]T, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(topicsAtOnce)
	for i, name := range names {
		g.Go(func() error {
			var err error
			answers[i], err = ask(ctx, name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(answers...), nil
}
