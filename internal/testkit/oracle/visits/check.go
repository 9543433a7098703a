package visits

import (
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// checkPage checks the guarantees for a single response.
func (r *Reader) checkPage(page Page) []error {
	var problems []error
	if len(page.Degraded) > 0 {
		problems = append(problems, fmt.Errorf("degraded: %v", page.Degraded))
	}
	if len(page.Items) > r.cfg.Limit {
		problems = append(problems, fmt.Errorf("%d items, requested %d", len(page.Items), r.cfg.Limit))
	}
	for _, item := range page.Items {
		problems = append(problems, r.checkItem(item)...)
	}
	return problems
}

// checkItem compares an item with the current state of its pin.
func (r *Reader) checkItem(item Item) []error {
	pin, ok := r.product.Pin(item.Pin)
	switch {
	case !ok:
		return []error{fmt.Errorf("%s: this pin does not exist", item.Pin)}
	case item.New && !r.canBeNew(item):
		return []error{fmt.Errorf("%s: no visible, unseen candidate of %s", item.Pin, item.Source)}
	case !item.New && !r.product.VisibleMaterialized(r.user, item.Source, item.Pin):
		return []error{fmt.Errorf("%s: no longer visible", item.Pin)}
	}
	var problems []error
	differs := func(what string, got, want any) {
		problems = append(problems, fmt.Errorf("%s: %s %v, want %v", item.Pin, what, got, want))
	}
	if item.Author != pin.Author {
		differs("author", item.Author, pin.Author)
	}
	if board := boardOf(item); board != pin.Board {
		differs("board", board, pin.Board)
	}
	if !slices.Equal(item.Interests, pin.Interests) {
		differs("interests", item.Interests, pin.Interests)
	}
	if got := schemas.MicrosOf(item.Time); got != pin.Created {
		differs("time", got.Time(), pin.Created.Time())
	}
	if item.Title != pin.Title {
		differs("title", item.Title, pin.Title)
	}
	if item.Link != pin.Link {
		differs("link", item.Link, pin.Link)
	}
	return problems
}

func boardOf(item Item) schemas.BoardID {
	if item.Board == nil {
		return ""
	}
	return *item.Board
}

// canBeNew reports whether the item can be new: it must be unseen and visible in its source. An exploration item must be
// visible in any source, including related, which needs no edge.
func (r *Reader) canBeNew(item Item) bool {
	if r.seen[item.Pin] {
		return false
	}
	if item.Source != schemas.Explore {
		return r.product.Visible(r.user, item.Source, item.Pin)
	}
	return slices.ContainsFunc(append(edgeSources(), schemas.Related), func(s schemas.Source) bool {
		return r.product.Visible(r.user, s, item.Pin)
	})
}

// checkNew compares the new items of a visit, in order, with the pools.
func (r *Reader) checkNew(items []Item) []error {
	var problems []error
	taken := map[schemas.PinID]schemas.Source{}
	bySource := map[schemas.Source][]Item{}
	for _, item := range items {
		taken[item.Pin] = item.Source
		bySource[item.Source] = append(bySource[item.Source], item)
	}
	for source, items := range bySource {
		for i := 1; i < len(items); i++ {
			if items[i].Score > items[i-1].Score && source != schemas.Explore {
				problems = append(problems, fmt.Errorf("%s: score %v after %v of the same source", items[i].Pin, items[i].Score, items[i-1].Score))
			}
		}
	}
	if !r.cfg.Plain || len(r.seen)+len(items) > r.cfg.Cap { // above the cap, the pools may have dropped the next best
		return problems
	}
	for _, source := range edgeSources() {
		problems = append(problems, r.checkBest(source, bySource[source], taken)...)
	}
	return problems
}

// checkBest checks that the items are the best of the source's pool, in order. It ignores pins that the visit took from
// another source.
func (r *Reader) checkBest(source schemas.Source, items []Item, taken map[schemas.PinID]schemas.Source) []error {
	pool := r.product.Pool(r.user, source, len(r.seen)+r.cfg.Cap)
	pool = slices.DeleteFunc(pool, func(c schemas.PoolItem) bool {
		by, ok := taken[c.Pin]
		return ok && by != source
	})
	for i, item := range items {
		if i >= len(pool) {
			return nil // checkItem reports invalid items
		}
		if item.Pin != pool[i].Pin {
			return []error{fmt.Errorf("%s has rank %d in %s, want %s", item.Pin, i+1, source, pool[i].Pin)}
		}
		if !sameScore(item.Score, pool[i].PoolScore) {
			return []error{fmt.Errorf("%s: score %v, want %v", item.Pin, item.Score, pool[i].PoolScore)}
		}
	}
	return nil
}
