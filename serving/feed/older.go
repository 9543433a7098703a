package feed

import (
	"context"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

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
