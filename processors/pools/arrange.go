package pools

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// item is a candidate as a chunk shows it.
type item struct {
	pin     schemas.PinID
	score   float64 // answered
	created schemas.Micros
	schemas.Facets
}

// queue are the items of one source, best first.
type queue struct {
	source schemas.Source
	items  []item
}

// arrange takes up to limit items from the queues, no pin twice: each place goes to the source that is furthest below
// its share of all that the user was shown, mix included, and that source gives its best item that the caps admit. An
// item passed over is not taken in this chunk any more, so that the items of one source descend. Where the caps leave
// the chunk short it is arranged anew with looser ones, see looser, and the first of the longest arrangements counts.
//
// It returns the items and the mix after them. mix is not changed.
func arrange(limit int, queues []queue, f Feed, mix map[string]float64) ([]schemas.ServedItem, map[string]float64) {
	var list []schemas.ServedItem
	var after map[string]float64
	for _, caps := range looser(f.Caps) {
		a := arrangement{feed: f, caps: caps, mix: newMixer(f, mix), taken: map[schemas.PinID]bool{}}
		a.fill(limit, queues)
		if after == nil || len(a.list) > len(list) {
			list, after = a.list, a.mix.after()
		}
		if len(list) == limit {
			break
		}
	}
	return list, after
}

// looser returns the caps in the order in which they give way: the board's goes first, then the author's is doubled,
// then there are none.
func looser(c Caps) []Caps {
	if c.Window == 0 || c.Author == 0 && c.Board == 0 {
		return []Caps{{}}
	}
	return []Caps{c, {Window: c.Window, Author: c.Author}, {Window: c.Window, Author: 2 * c.Author}, {}}
}

// arrangement is a chunk in the making.
type arrangement struct {
	feed  Feed
	caps  Caps
	mix   mixer
	taken map[schemas.PinID]bool
	list  []schemas.ServedItem
}

func (a *arrangement) fill(limit int, queues []queue) {
	rest := make([]queue, len(queues))
	copy(rest, queues)
	for len(a.list) < limit {
		q, at := a.next(rest)
		if q == nil {
			return
		}
		it := q.items[at]
		q.items = q.items[at+1:]
		a.taken[it.pin] = true
		a.mix.count(q.source)
		a.list = append(a.list, schemas.ServedItem{
			Pin: it.pin, Source: q.source, Facets: it.Facets, Score: it.score, Created: it.created,
		})
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
		if !a.taken[items[i].pin] && a.admits(&items[i].Facets) {
			return i
		}
	}
	return -1
}

// admits says whether the caps allow an item in the next place.
func (a *arrangement) admits(f *schemas.Facets) bool {
	if a.caps.Window == 0 {
		return true
	}
	author, board := 1, 1
	for _, near := range a.list[max(0, len(a.list)-a.caps.Window+1):] {
		if near.Author == f.Author {
			author++
		}
		if near.Board == f.Board && f.Board != "" {
			board++
		}
	}
	return (a.caps.Author == 0 || author <= a.caps.Author) && (a.caps.Board == 0 || board <= a.caps.Board)
}

// mixer holds the shares of the sources over the impressions of a user: each impression counts one for its source and
// makes those before it count 1/Memory less. The next one is due to the source whose count, with half an item more, is
// the smallest for its share: the method of Sainte-Laguë and Webster for dividing seats, which keeps each source within
// an item or so of its share at every moment. A source that has nothing to give leaves its part to the others in
// proportion, and catches up on what is remembered when it has.
type mixer struct {
	feed   Feed
	counts map[string]float64
}

func newMixer(f Feed, mix map[string]float64) mixer {
	m := mixer{feed: f, counts: make(map[string]float64, len(mix)+1)}
	for source, n := range mix {
		m.counts[source] = n
	}
	return m
}

// before says whether a is to give an item rather than b. Ties go to the larger share, then by name.
func (m *mixer) before(a, b schemas.Source) bool {
	dueA, dueB := m.due(a), m.due(b)
	if dueA != dueB {
		return dueA < dueB
	}
	if shareA, shareB := m.feed.share(a), m.feed.share(b); shareA != shareB {
		return shareA > shareB
	}
	return a < b
}

func (m *mixer) due(s schemas.Source) float64 {
	return (m.counts[string(s)] + 0.5) / m.feed.share(s)
}

func (m *mixer) count(s schemas.Source) {
	keep := 1 - 1/float64(m.feed.Memory)
	for source := range m.counts {
		m.counts[source] *= keep
	}
	m.counts[string(s)]++
}

// after returns the counts to remember. What has faded away is left out, so that the mix stays small.
func (m *mixer) after() map[string]float64 {
	const faded = 1e-3
	mix := make(map[string]float64, len(m.counts))
	for source, n := range m.counts {
		if n >= faded {
			mix[source] = math.Round(n*1e6) / 1e6
		}
	}
	return mix
}
