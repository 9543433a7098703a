package rules

import "github.com/smartfeed/smartfeed/schemas"

// arrange takes up to limit items from the queues, no pin twice: each place goes to the source that is furthest below
// its share of all that the user was shown, mix included, and that source gives its best item that the caps admit. An
// item passed over is not taken in this chunk any more, so that the items of one source descend. Where the caps leave
// the chunk short it is arranged anew with looser ones, see looser, and the first of the longest arrangements counts.
// mix is not changed. The arrangement knows which cap passed watch over.
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

// arrangement is a chunk in the making.
type arrangement struct {
	near  window
	mix   mixer
	taken map[schemas.PinID]bool
	list  []schemas.ServedItem

	watch  schemas.PinID
	broken string // the cap that watch would have broken when it was passed over
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
			Pin: it.Pin, Source: q.source, Facets: it.Facets, Score: it.score, Created: it.Created, Pool: it.pool,
		})
		a.near.moved(a.list)
	}
}

// next returns the queue that is to give the next item, and which one; nil when none can.
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

// first returns the index of the first item that may stand in the next place, -1 if there is none.
func (a *arrangement) first(items []item) int {
	for i := range items {
		if !a.taken[items[i].Pin] && a.near.admits(&items[i].Facets) == "" {
			return i
		}
	}
	return -1
}

// note looks for watch among items that are passed over.
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
