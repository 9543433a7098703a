package oracle

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pool returns the user's n best candidates of Following or FromInterest: visible and unseen, best first, ties by pin.
func (p *Product) Pool(user schemas.UserID, source schemas.Source, n int) []schemas.PoolItem {
	items := p.candidates(user, source)
	slices.SortFunc(items, func(a, b schemas.PoolItem) int {
		return cmp.Or(cmp.Compare(b.PoolScore, a.PoolScore), cmp.Compare(a.Pin, b.Pin))
	})
	return items[:min(n, len(items))]
}

func (p *Product) candidates(user schemas.UserID, source schemas.Source) []schemas.PoolItem {
	if p.deleted(user) {
		return nil
	}
	var items []schemas.PoolItem
	for _, pin := range p.Pins() {
		if p.seen[user][pin.ID] || !p.reaches(user, source, pin.Facets) || p.hidden(user, pin.Facets) {
			continue
		}
		items = append(items, schemas.PoolItem{
			Pin:       pin.ID,
			PoolScore: score.Weighted(score.Base(pin.Quality, pin.Created, p.cfg.HalfLife), 1),
			Time:      schemas.Timestamp(pin.Created),
			Facets:    pin.Facets,
		})
	}
	return items
}

// Visible reports whether the user may see the pin as an item of the source.
func (p *Product) Visible(user schemas.UserID, source schemas.Source, id schemas.PinID) bool {
	pin, ok := p.Pin(id)
	return ok && !p.deleted(user) && !p.hidden(user, pin.Facets) && p.reaches(user, source, pin.Facets)
}

// VisibleMaterialized reports whether a pin from the source is visible in the user's materialized feed. A pin that was
// delivered over an edge is visible while an edge of any source reaches it.
func (p *Product) VisibleMaterialized(user schemas.UserID, source schemas.Source, id schemas.PinID) bool {
	return p.Visible(user, source, id) ||
		p.Visible(user, schemas.Following, id) || p.Visible(user, schemas.FromInterest, id)
}

// reaches reports whether an edge of the source reaches pins with these facets: a followed author or board, or a followed
// interest. Other sources need no edge.
func (p *Product) reaches(user schemas.UserID, source schemas.Source, f schemas.Facets) bool {
	switch source {
	case schemas.Following:
		return p.Follows(user, schemas.ID(f.Author)) || f.Board != "" && p.Follows(user, schemas.ID(f.Board))
	case schemas.FromInterest:
		return slices.ContainsFunc(f.Interests, func(i schemas.InterestID) bool { return p.Follows(user, schemas.ID(i)) })
	}
	return true
}

// hidden reports whether pins with these facets are hidden from the user, whatever their source. These are the user's own
// pins, pins whose author blocks or is blocked by the user, and pins whose board or interest the user blocks.
func (p *Product) hidden(user schemas.UserID, f schemas.Facets) bool {
	if f.Author == user || p.Blocks(user, schemas.ID(f.Author)) || p.Blocks(f.Author, schemas.ID(user)) {
		return true
	}
	if f.Board != "" && p.Blocks(user, schemas.ID(f.Board)) {
		return true
	}
	return slices.ContainsFunc(f.Interests, func(i schemas.InterestID) bool { return p.Blocks(user, schemas.ID(i)) })
}
