package feed

import (
	"context"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Pools reads the candidates of users, changing nothing.
type Pools interface {
	// Pool returns the best candidates of a user and source, limit of them, and how many there are.
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	// FeedState returns what a feed remembers of a user and holds back. An unconfigured feed is schemas.ErrUnknownFeed.
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

// poolLook is of how many candidates of a pool the cards are looked at.
const poolLook = 1000

// Pool answers the best candidates of a user and source, at most limit of them, and how many there are. A candidate that came
// by no edge waits in its pool also when its pin is deleted: what the card says so of is left out, among the best 1000. Without the
// store nothing is left out. It fails when the pools cannot be read.
func (s *Service) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	if s.deps.Deleted.Has(user) {
		return &schemas.Pool{Source: source}, nil
	}
	if source == schemas.Following || source == schemas.FromInterest { // deletions travel along edges
		return s.deps.Pools.Pool(ctx, user, source, limit)
	}
	pool, err := s.deps.Pools.Pool(ctx, user, source, max(limit, poolLook))
	if err != nil {
		return nil, err
	}
	r := s.newReading(user)
	for part := range slices.Chunk(pool.Items, maxBatch) {
		items := make([]schemas.ServedItem, len(part))
		for i := range part {
			items[i].Pin = part[i].Pin
		}
		if !r.learnCards(ctx, items) {
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

// FeedState answers what a feed remembers of a user and holds back. Its errors are those of Pools.
func (s *Service) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	if s.deps.Deleted.Has(user) {
		return &schemas.FeedState{Feed: feed}, nil
	}
	return s.deps.Pools.FeedState(ctx, user, feed)
}
