package feed

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// Visit answers a visit with at most limit items, new ones first. The only errors are ErrBadLimit and
// schemas.ErrUnknownFeed.
func (s *Service) Visit(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	return s.visitOrPeek(ctx, "visit", schemas.ChunkRequest{Served: s.deps.NewID(), User: user, Feed: feed, Limit: limit})
}

// VisitOnce is Visit with a key of the visit, of any length. If an earlier attempt with the same key has shown new items, and
// is among the user's last 32 visits, VisitOnce shows none. Its answer is then the materialized feed, with those items on top.
func (s *Service) VisitOnce(ctx context.Context, user schemas.UserID, feed string, limit int, key string) (Page, error) {
	attempts := attemptsOf(key)
	return s.visitOrPeek(ctx, "visit", schemas.ChunkRequest{
		Served: attempts + s.deps.NewID(), Attempts: attempts, User: user, Feed: feed, Limit: limit,
	})
}

// attemptsOf returns the prefix of the ids of a visit with a key. It has 23 bytes, so that an id fits in a record.
func attemptsOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:16]) + "."
}

// Peek returns the answer that Visit would give now, and changes nothing. It reads the feed of an inactive user as it is, with
// "reactivating" in Degraded. Its errors are those of Visit.
func (s *Service) Peek(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	return s.visitOrPeek(ctx, "peek", schemas.ChunkRequest{Peek: true, User: user, Feed: feed, Limit: limit})
}

// visitOrPeek answers a visit or a peek, which is the kind of the metrics.
func (s *Service) visitOrPeek(ctx context.Context, kind string, req schemas.ChunkRequest) (Page, error) {
	if err := checkLimit(req.Limit); err != nil {
		return Page{}, err
	}
	if len(req.Feed) > maxFeedName {
		return Page{}, fmt.Errorf("feed of %d bytes: %w", len(req.Feed), schemas.ErrUnknownFeed)
	}
	if s.deps.Deleted.Has(req.User) {
		return Page{}.full(), nil
	}
	defer s.metrics.time(kind, s.deps.Now)()
	page, err := s.visit(ctx, req)
	s.metrics.count(page.Degraded)
	return page, err
}

// Older answers the page at cursor, the Page.Next of an earlier answer. The only errors are ErrBadLimit and ErrBadCursor.
func (s *Service) Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{}, err
	}
	at, err := s.cursors.openFeed(cursor, user)
	if err != nil {
		return Page{}, err
	}
	if s.deps.Deleted.Has(user) {
		return Page{}.full(), nil
	}
	defer s.metrics.time("older", s.deps.Now)()
	r := s.newReader(user)
	r.next = at.below - 1
	if at.below == math.MaxInt64 {
		r.next = unknown
	}
	items := r.fill(ctx, nil, limit)
	page := r.page(at.feed, items)
	s.metrics.count(page.Degraded)
	return page, nil
}
