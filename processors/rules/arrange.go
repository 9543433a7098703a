package rules

import "github.com/smartfeed/smartfeed/schemas"

// arrange takes up to limit items from the queues, without repeating a pin. Each place goes to the source that is furthest
// below its share of all impressions, including mix. That source fills it with its best item that the caps admit. A skipped
// item is not used later in the chunk, so the items of one source are in descending order.
//
// If the caps leave the chunk short, arrange tries again with relaxed caps, in the order of looser. It returns the first of
// the longest arrangements. It does not modify mix. The arrangement records which cap skipped the pin watch.
func (f Feed) arrange(limit int, queues []queue, mix map[string]float64, watch schemas.PinID) (*arrangement, Relaxation) {
	var best *arrangement
	var how Relaxation
	for _, caps := range f.Caps.looser() {
		a := &arrangement{
			near: newWindow(caps.Caps), mix: newMixer(f, mix), taken: map[schemas.PinID]bool{}, watch: watch,
		}
		a.fill(limit, queues)
		if best == nil || len(a.list) > len(best.list) {
			best, how = a, caps.how
		}
		if len(best.list) == limit {
			break
		}
	}
	return best, how
}

// arrangement is an unfinished chunk.
type arrangement struct {
	near  window
	mix   mixer
	taken map[schemas.PinID]bool
	list  []schemas.ServedItem

	watch  schemas.PinID
	broken string // cap that watch would have broken when it was skipped
}

func (a *arrangement) fill(limit int, queues []queue) {
	rest := make([]queue, len(queues))
	copy(rest, queues)
	for len(a.list) < limit {
		q, at := a.next(rest)
		if q == nil {
			return
		}
		a.note(q.items[:at])
		it := q.items[at]
		q.items = q.items[at+1:]
		a.taken[it.Pin] = true
		a.mix.count(q.source)
		a.list = append(a.list, schemas.ServedItem{
			Pin: it.Pin, Source: q.source, Facets: it.Facets, RankScore: it.rankScore, Created: it.Created, Pool: it.pool,
		})
		a.near.moved(a.list)
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
		if at := a.first(q.items); at >= 0 {
			best, bestAt = q, at
		}
	}
	return best, bestAt
}

// first returns the index of the first item that may fill the next place, or -1 if there is none.
func (a *arrangement) first(items []item) int {
	for i := range items {
		if !a.taken[items[i].Pin] && a.near.admits(&items[i].Facets) == "" {
			return i
		}
	}
	return -1
}

// note looks for watch among skipped items.
func (a *arrangement) note(passed []item) {
	if a.watch == "" {
		return
	}
	for i := range passed {
		if passed[i].Pin == a.watch && !a.taken[a.watch] {
			a.broken = a.near.admits(&passed[i].Facets)
		}
	}
}
