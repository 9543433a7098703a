package feed

import (
	"context"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// List answers with the publications of a followee, most recently created first. With cursor "" it starts at the
// newest, and otherwise at the end of the page that returned the cursor. It omits deleted pins, all pins of deleted
// authors, and pins that a block hides from viewer. viewer is "" if the list is not for a particular user.
//
// The only errors are ErrBadLimit and ErrBadCursor. If the store is unavailable, the page is empty, Degraded contains
// "store", and Next is the same place.
func (s *Service) List(
	ctx context.Context, followee schemas.Followee, viewer schemas.UserID, cursor string, limit int,
) (ListPage, error) {
	if err := checkLimit(limit); err != nil {
		return ListPage{}, err
	}
	place := ""
	if cursor != "" {
		var err error
		if place, err = s.cursors.openList(cursor, followee); err != nil {
			return ListPage{}, err
		}
	}
	if s.deps.Deleted.Has(schemas.UserID(followee)) {
		return ListPage{Items: []Pin{}, Degraded: []string{}}, nil
	}
	defer s.metrics.time("list", s.deps.Now)()
	page := s.list(ctx, followee, place, viewer, limit)
	s.metrics.count(page.Degraded)
	return page, nil
}

// listed is a range of a list, as read from the store.
type listed struct {
	pins []schemas.PinVersion
	next string
}

func (s *Service) list(ctx context.Context, followee schemas.Followee, place string, viewer schemas.UserID, limit int) ListPage {
	page := ListPage{Items: []Pin{}, Degraded: []string{}}
	r := s.newListReader(viewer)
	if r.blocks(ctx, followee) {
		return page
	}
	for len(page.Items) < limit && r.skipped < s.cfg.MaxSkippedItems {
		part, ok := callStore(ctx, r, func(ctx context.Context) (listed, error) {
			pins, next, err := s.deps.Store.List(ctx, followee, place, limit-len(page.Items))
			return listed{pins, next}, err
		})
		items := itemsOf(part.pins)
		if !ok || !r.loadFacts(ctx, items) || r.stale {
			page.Degraded = r.degraded
			break
		}
		page.Items = append(page.Items, r.pins(items)...)
		if part.next == "" {
			return page
		}
		if place = part.next; len(part.pins) == 0 { // the store has reached its own limit for reading on
			break
		}
	}
	next := s.cursors.sealList(followee, place)
	page.Next = &next
	return page
}

// newListReader returns a reader of lists, which may contain the viewer's own pins.
func (s *Service) newListReader(viewer schemas.UserID) *reader {
	r := s.newReader(viewer)
	r.facts.viewer.User = ""
	return r
}

// blocks reports whether a block exists between the user and a followee. The list is then the same as that of a
// followee without publications.
func (r *reader) blocks(ctx context.Context, followee schemas.Followee) bool {
	if r.user == "" || r.user == schemas.UserID(followee) {
		return false
	}
	// Any id can stand for an author.
	r.loadEdges(ctx, []schemas.ServedItem{{Facets: schemas.Facets{Author: schemas.UserID(followee)}}})
	_, blocks := r.facts.viewer.Blocks[schemas.ID(followee)]
	_, blockedBy := r.facts.viewer.BlockedBy[schemas.ID(followee)]
	return blocks || blockedBy
}

// pins returns the pins of items that may be shown.
func (r *reader) pins(items []schemas.ServedItem) (pins []Pin) {
	for i := range items {
		if r.facts.hides(&items[i], 0) {
			r.skipped++
			continue
		}
		pins = append(pins, r.facts.pin(&items[i]))
	}
	return pins
}

func itemsOf(pins []schemas.PinVersion) []schemas.ServedItem {
	return convert.All(pins, func(p schemas.PinVersion) schemas.ServedItem {
		return schemas.ServedItem{Pin: p.Pin, Facets: p.Facets, Created: p.Created}
	})
}
