package oracle

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pool returns the n best candidates that the user has of the source: visible, unseen, best first, ties by pin.
func (p *Product) Pool(user schemas.UserID, source schemas.Source, n int) []schemas.PoolItem {
	items := p.candidates(user, source)
	slices.SortFunc(items, func(a, b schemas.PoolItem) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Pin, b.Pin))
	})
	return items[:min(n, len(items))]
}

func (p *Product) candidates(user schemas.UserID, source schemas.Source) []schemas.PoolItem {
	if p.deleted(user) {
		return nil
	}
	if source != schemas.Following && source != schemas.FromInterest {
		return p.offered(user, source)
	}
	var items []schemas.PoolItem
	for _, pin := range p.Pins() {
		if p.seen[user][pin.ID] || !p.reaches(user, source, pin.Facets) || p.hidden(user, pin.Facets) {
			continue
		}
		items = append(items, schemas.PoolItem{
			Pin:    pin.ID,
			Score:  score.Base(pin.Quality, pin.Created, p.cfg.HalfLife),
			Time:   pin.Created,
			Facets: pin.Facets,
		})
	}
	return items
}

// Visible says whether the user may be shown the pin as coming from the source.
func (p *Product) Visible(user schemas.UserID, source schemas.Source, id schemas.PinID) bool {
	pin, ok := p.Pin(id)
	return ok && !p.deleted(user) && !p.hidden(user, pin.Facets) && p.reaches(user, source, pin.Facets)
}

// VisibleFrozen says whether a pin that the user was shown from the source may stay in the frozen feed: a pin that came
// by an edge stays while any edge of any source brings it.
func (p *Product) VisibleFrozen(user schemas.UserID, source schemas.Source, id schemas.PinID) bool {
	return p.Visible(user, source, id) ||
		p.Visible(user, schemas.Following, id) || p.Visible(user, schemas.FromInterest, id)
}

// reaches says whether the source brings pins with these facets to the user: a followed author or board, or a followed
// interest; other sources need no edge.
func (p *Product) reaches(user schemas.UserID, source schemas.Source, f schemas.Facets) bool {
	switch source {
	case schemas.Following:
		return p.Follows(user, schemas.ID(f.Author)) || f.Board != "" && p.Follows(user, schemas.ID(f.Board))
	case schemas.FromInterest:
		return slices.ContainsFunc(f.Interests, func(i schemas.InterestID) bool { return p.Follows(user, schemas.ID(i)) })
	}
	return true
}

// hidden says whether the user must not see pins with these facets, whatever brings them: they are the user's own, or
// one of the two blocks the other, or the user blocks the board or an interest.
func (p *Product) hidden(user schemas.UserID, f schemas.Facets) bool {
	if f.Author == user || p.Blocks(user, schemas.ID(f.Author)) || p.Blocks(f.Author, schemas.ID(user)) {
		return true
	}
	if f.Board != "" && p.Blocks(user, schemas.ID(f.Board)) {
		return true
	}
	return slices.ContainsFunc(f.Interests, func(i schemas.InterestID) bool { return p.Blocks(user, schemas.ID(i)) })
}

// offered returns what other systems offered the user under the source's name: of each pin the facets of the newest
// offer and the best score, unless the pin is known to be deleted.
func (p *Product) offered(user schemas.UserID, source schemas.Source) []schemas.PoolItem {
	offers := slices.Clone(p.offers[user])
	slices.SortStableFunc(offers, func(a, b *schemas.Offer) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID))
	})
	best := map[schemas.PinID]schemas.PoolItem{}
	for _, o := range offers {
		if o.Source != source {
			continue
		}
		for _, c := range o.Candidates {
			item := schemas.PoolItem{Pin: c.Pin, Score: c.Score, Time: c.Created, Facets: c.Facets}
			if before, ok := best[c.Pin]; ok {
				item.Score = max(item.Score, before.Score)
			}
			best[c.Pin] = item
		}
	}
	var items []schemas.PoolItem
	for id, item := range best {
		gone := p.pins[id] != nil && p.pins[id].deleted || p.deleted(item.Author)
		if !gone && !p.seen[user][id] && !p.hidden(user, item.Facets) {
			items = append(items, item)
		}
	}
	return items
}
