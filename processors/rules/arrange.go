package rules

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
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

// arrangement is an unfinished chunk.
type arrangement struct {
	near  window
	mix   mixer
	taken map[schemas.PinID]bool
	list  []schemas.ServedItem

	shared int // number of first items that the sources with shares filled

	vectors map[schemas.PinID]Vector
	spacing *spacing

	watch    schemas.PinID
	violated string // cap that watch would have violated when it was skipped

	// With Randomize, for each place:
	options [][]option
	drawn   []int // index in options
}

// newArrangement returns an empty arrangement. mix counts the earlier impressions of each source; it is not modified. vectors are those
// of Signals.
func newArrangement(f Feed, mix map[string]float64, watch schemas.PinID, vectors map[schemas.PinID]Vector) *arrangement {
	return &arrangement{
		near: newWindow(f.Caps), mix: newMixer(f, mix), taken: map[schemas.PinID]bool{}, watch: watch, vectors: vectors,
	}
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

// put fills the next place with an item of a source.
func (a *arrangement) put(source schemas.Source, it *item) {
	a.taken[it.Pin] = true
	a.mix.count(source)
	a.spacing.add(it.Pin)
	a.list = append(a.list, schemas.ServedItem{
		Pin: it.Pin, Source: source, Facets: it.Facets, RankScore: it.rankScore, Created: it.Created, Pool: it.pool,
	})
	a.near.advance(a.list)
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
		a.spacing.apply(q)
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

// Relaxation is the level to which the caps were relaxed to avoid a short chunk.
type Relaxation string

// The relaxation levels, in the order in which they are tried. Each one includes the previous ones.
const (
	NotRelaxed      Relaxation = ""
	WithoutInterest Relaxation = "interest" // no cap for interests
	WithoutBoard    Relaxation = "board"    // no cap for boards
	TwiceAuthor     Relaxation = "author"   // twice the cap for authors
	WithoutCaps     Relaxation = "all"
)

// relaxedCaps are the caps at a relaxation level.
type relaxedCaps struct {
	Caps
	level Relaxation
}

// relaxations returns the caps at each relaxation level, in order. It omits levels that change nothing.
func (c Caps) relaxations() []relaxedCaps {
	if c.Window == 0 || c.Author == 0 && c.Board == 0 && c.Interest == 0 {
		return []relaxedCaps{{Caps{}, NotRelaxed}}
	}
	all := []relaxedCaps{{c, NotRelaxed}}
	add := func(next Caps, level Relaxation) {
		if next != all[len(all)-1].Caps {
			all = append(all, relaxedCaps{next, level})
		}
	}
	c.Interest = 0
	add(c, WithoutInterest)
	c.Board = 0
	add(c, WithoutBoard)
	c.Author *= 2
	add(c, TwiceAuthor)
	add(Caps{}, WithoutCaps)
	return all
}

// window counts the facets of the last items of a chunk: those in a window with the next place.
type window struct {
	caps  Caps
	count map[schemas.ID]int
}

func newWindow(c Caps) window { return window{caps: c, count: map[schemas.ID]int{}} }

// admits returns the name of the cap that an item in the next place would violate, or "".
func (w window) admits(f *schemas.Facets) (violated string) {
	full := func(id schemas.ID, limit int) bool { return limit > 0 && id != "" && w.count[id] >= limit }
	switch {
	case w.caps.Window == 0:
		return ""
	case full(schemas.ID(f.Author), w.caps.Author):
		return "author"
	case full(schemas.ID(f.Board), w.caps.Board):
		return "board"
	}
	if w.caps.Interest > 0 {
		for _, id := range f.Interests {
			if full(schemas.ID(id), w.caps.Interest) {
				return "interest"
			}
		}
	}
	return ""
}

// advance moves the window past the last item of a list.
func (w window) advance(list []schemas.ServedItem) {
	if w.caps.Window == 0 {
		return
	}
	w.add(&list[len(list)-1].Facets, 1)
	if left := len(list) - w.caps.Window; left >= 0 {
		w.add(&list[left].Facets, -1)
	}
}

func (w window) add(f *schemas.Facets, n int) {
	for id := range f.Followees {
		w.count[schemas.ID(id)] += n
	}
}

// mixer balances the shares of the sources over the impressions of a user. Each impression adds one to the count of its
// source, after all counts were multiplied by 1 − 1/Memory. The next place is due to the source with the smallest (count +
// 0.5) / share. This is the Sainte-Laguë (Webster) method for allocating seats. It keeps each source within about one
// item of its share at any time. A source without candidates leaves its places to the others in proportion to their
// shares. When it has candidates again, it catches up on the remembered impressions.
type mixer struct {
	feed   Feed
	counts map[string]float64
}

func newMixer(f Feed, mix map[string]float64) mixer {
	return mixer{feed: f, counts: maps.Collect(maps.All(mix))} // also if mix is nil
}

// before reports whether a is due before b. Ties are decided by the larger share, then by name.
func (m *mixer) before(a, b schemas.Source) bool {
	return cmp.Or(cmp.Compare(m.due(a), m.due(b)), cmp.Compare(m.feed.Share(b), m.feed.Share(a)), cmp.Compare(a, b)) < 0
}

func (m *mixer) due(s schemas.Source) float64 {
	return (m.counts[string(s)] + 0.5) / m.feed.Share(s)
}

func (m *mixer) count(s schemas.Source) {
	keep := 1 - 1/float64(m.feed.ShareWindow)
	for source := range m.counts {
		m.counts[source] *= keep
	}
	m.counts[string(s)]++
}

// after returns the counts to remember. It omits counts that have decayed below 1e-3, to keep the mix small.
func (m *mixer) after() map[string]float64 {
	const minCount = 1e-3
	mix := make(map[string]float64, len(m.counts))
	for source, n := range m.counts {
		if n >= minCount {
			mix[source] = math.Round(n*1e6) / 1e6
		}
	}
	return mix
}

// Targets returns the target shares of the feed's sources and the given ones, with a sum of 1.
func (f Feed) Targets(sources ...schemas.Source) map[schemas.Source]float64 {
	targets, sum := make(map[schemas.Source]float64, len(f.Shares)+len(sources)), 0.0
	for source, share := range f.Shares {
		targets[source] = share
		sum += share
	}
	for _, source := range sources {
		if _, known := targets[source]; !known {
			targets[source] = f.Share(source)
			sum += f.Share(source)
		}
	}
	if sum > 0 {
		for source := range targets {
			targets[source] /= sum
		}
	}
	return targets
}
