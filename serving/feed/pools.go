package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pools reads the candidates of users. It changes nothing.
type Pools interface {
	// Pool returns the best candidates of a user and source, at most limit, and their total number.
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	// FeedState returns the state that a feed keeps for a user, including deferred items. It returns schemas.ErrUnknownFeed
	// if the feed is not configured.
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

// maxPoolChecked is how many candidates of a pool are checked against their cards.
const maxPoolChecked = 1000

// Pool answers with the best candidates of a user and source, at most limit, and their total number. Candidates that no edge
// delivered stay in the pool when their pin is deleted. Pool checks the cards of the best 1000 of them and omits deleted
// pins. If the store is unavailable, it omits nothing. It returns an error if the pools cannot be read.
func (s *Service) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	if s.deps.Deleted.Has(user) {
		return &schemas.Pool{Source: source}, nil
	}
	if source == schemas.Following || source == schemas.FromInterest { // edges deliver deletions
		return s.deps.Pools.Pool(ctx, user, source, limit)
	}
	pool, err := s.deps.Pools.Pool(ctx, user, source, max(limit, maxPoolChecked))
	if err != nil {
		return nil, err
	}
	r := s.newReader(user)
	for part := range slices.Chunk(pool.Items, maxBatch) {
		items := convert.All(part, func(it schemas.PoolItem) schemas.ServedItem { return schemas.ServedItem{Pin: it.Pin} })
		if !r.loadCards(ctx, items) {
			break
		}
	}
	left := slices.DeleteFunc(slices.Clone(pool.Items), func(it schemas.PoolItem) bool {
		card := r.facts.cards[it.Pin]
		return card != nil && card.Deleted
	})
	return &schemas.Pool{
		Source: source, Total: pool.Total - len(pool.Items) + len(left), Items: left[:min(limit, len(left))],
	}, nil
}

// FeedState answers with the state that a feed keeps for a user. Its errors are those of Pools.
func (s *Service) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	if s.deps.Deleted.Has(user) {
		return &schemas.FeedState{Feed: feed}, nil
	}
	return s.deps.Pools.FeedState(ctx, user, feed)
}

// Waiting returns how many new items a visit could show, at most 100. It returns an error if the generator does.
func (s *Service) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	if s.deps.Deleted.Has(user) {
		return 0, nil
	}
	n, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (int, error) {
		return s.deps.Generator.Waiting(ctx, user)
	}, nil).wait()
	if err != nil {
		return 0, fmt.Errorf("count new items of %s: %w", user, err)
	}
	return n, nil
}
