package rules

import "github.com/smartfeed/smartfeed/schemas"

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

// put fills the next place with an item of a source.
func (a *arrangement) put(source schemas.Source, it *item) {
	a.taken[it.Pin] = true
	a.mix.count(source)
	a.list = append(a.list, schemas.ServedItem{
		Pin: it.Pin, Source: source, Facets: it.Facets, RankScore: it.rankScore, Created: it.Created, Pool: it.pool,
	})
	a.spacing.add(it.Pin)
	a.near.advance(a.list)
}
