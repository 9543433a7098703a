package rules

import (
	"maps"
	"slices"
)

// arrange takes items from the queues until the arrangement has limit items, without repeating a pin. Each place goes to the source
// that is furthest below its share of all impressions, including those in the mix of the arrangement. That source fills it with its
// best item that the caps admit. A skipped item is not used later in the chunk, so the items of one source are in descending order.
//
// If the caps leave the chunk short, arrange tries again with the caps of the next relaxation level. It returns the first of
// the longest arrangements. It does not modify from.
func (f Feed) arrange(from *arrangement, limit int, queues []queue) (*arrangement, Relaxation) {
	var best *arrangement
	var level Relaxation
	for _, caps := range f.Caps.relaxations() {
		a := *from
		a.near, a.mix, a.taken, a.list = newWindow(caps.Caps), newMixer(f, from.mix.counts), maps.Clone(from.taken), slices.Clone(from.list)
		for i := range a.list {
			a.near.advance(a.list[:i+1])
		}
		a.fill(limit, queues)
		if best == nil || len(a.list) > len(best.list) {
			best, level = &a, caps.level
		}
		if len(best.list) == limit {
			break
		}
	}
	return best, level
}

func (a *arrangement) fill(limit int, queues []queue) {
	rest := slices.Clone(queues)
	a.spacing = newSpacing(a.mix.feed.Spacing, a.vectors, a.list, rest)
	for len(a.list) < limit {
		q, at := a.next(rest)
		if q == nil {
			return
		}
		a.recordCap(q.items[:at])
		it := &q.items[at]
		q.items = q.items[at+1:]
		a.put(q.source, it)
	}
}

// next returns the queue that fills the next place and the index of the item, or nil if no queue can.
func (a *arrangement) next(queues []queue) (*queue, int) {
	var best *queue
	var bestAt int
	for i := range queues {
		q := &queues[i]
		if best != nil && !a.mix.before(q.source, best.source) {
			continue
		}
		q.sort()
		if at := a.first(q.items); at >= 0 {
			best, bestAt = q, at
		}
	}
	return best, bestAt
}

// first returns the index of the first item that may fill the next place, or -1 if there is none.
func (a *arrangement) first(items []item) int {
	return slices.IndexFunc(items, func(it item) bool { return !a.taken[it.Pin] && a.near.admits(&it.Facets) == "" })
}

// recordCap sets violated if watch is among the skipped items.
func (a *arrangement) recordCap(skipped []item) {
	if a.watch == "" {
		return
	}
	for i := range skipped {
		if skipped[i].Pin == a.watch && !a.taken[a.watch] {
			a.violated = a.near.admits(&skipped[i].Facets)
		}
	}
}
