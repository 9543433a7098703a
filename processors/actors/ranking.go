package actors

import (
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// ranking holds the strongest affinities of a user in memory, so a send does not read all of the user's rows. All
// affinities decay at the same rate, so only an action changes their order.
type ranking struct {
	strongest []rankedFacet // unordered: every facet that is stronger than weaker, and at most a fixed number
	weaker    rankedFacet   // the strongest facet that is not in strongest; zero: there is none
	read      schemas.Micros
	deleted   int // number of deleted users at the time read
}

// rankedFacet is a facet with a positive affinity.
type rankedFacet struct {
	decay.Amount
	facet schemas.ID
	rank  float64 // log2 of the affinity, plus a term that is the same for all facets at any time
}

func newRankedFacet(id schemas.ID, d decay.Amount, halfLife time.Duration) rankedFacet {
	return rankedFacet{d, id, math.Log2(d.Value) + float64(d.Time)/float64(schemas.MicrosIn(halfLife))}
}

// stronger reports whether f comes before g. Ties are broken by facet.
func (f rankedFacet) stronger(g rankedFacet) bool {
	return g.facet == "" || f.rank > g.rank || f.rank == g.rank && f.facet < g.facet
}

// set replaces the affinity for a facet. It keeps at most limit facets.
func (r *ranking) set(id schemas.ID, d decay.Amount, halfLife time.Duration, limit int) {
	for i := range r.strongest {
		if r.strongest[i].facet == id {
			r.drop(i)
			break
		}
	}
	r.add(id, d, halfLife, limit)
}

// add is set for a facet that the ranking does not contain.
func (r *ranking) add(id schemas.ID, d decay.Amount, halfLife time.Duration, limit int) {
	if d.Value <= 0 {
		return
	}
	f := newRankedFacet(id, d, halfLife)
	if !f.stronger(r.weaker) {
		return
	}
	r.strongest = append(r.strongest, f)
	if len(r.strongest) <= limit {
		return
	}
	last := 0
	for i, f := range r.strongest {
		if r.strongest[last].stronger(f) {
			last = i
		}
	}
	r.weaker = r.strongest[last]
	r.drop(last)
}

// drop removes a facet of strongest. It fills the place with the last one, because moving all later ones would cost more than the
// search.
func (r *ranking) drop(i int) {
	last := len(r.strongest) - 1
	r.strongest[i] = r.strongest[last]
	r.strongest[last] = rankedFacet{}
	r.strongest = r.strongest[:last]
}

// top returns the n strongest affinities as of now, as the function strongest does, without those for deleted authors. It
// returns false if too few facets remain in memory.
func (r *ranking) top(n int, now schemas.Micros, halfLife time.Duration, deleted visibility.GrowingDeletedUsers) ([]schemas.Affinity, bool) {
	r.strongest = slices.DeleteFunc(r.strongest, func(f rankedFacet) bool { return ofDeletedAuthor(f.facet, deleted) })
	if len(r.strongest) < n && r.weaker.facet != "" {
		return nil, false
	}
	all := make([]schemas.Affinity, len(r.strongest))
	for i, f := range r.strongest {
		all[i] = schemas.Affinity{Facet: f.facet, Value: f.At(now, halfLife)}
	}
	return strongest(all, n), true
}

func ofDeletedAuthor(id schemas.ID, deleted visibility.DeletedUsers) bool {
	return id.Kind() == schemas.KindUser && deleted.Has(schemas.UserID(id))
}

// maxRanked is the number of affinities per generation that rankings keeps of a partition, some 100 bytes each.
const maxRanked = 50_000

// rankings are the rankings of recently active users of a partition. There are two generations: a ranking without use during
// a full generation is dropped, and read again when the user's affinities are sent next.
type rankings struct {
	young, old map[schemas.UserID]*ranking
	facets     int // in young, when they were added
}

func newRankings() *rankings { return &rankings{young: map[schemas.UserID]*ranking{}} }

// of returns the ranking of a user, or nil.
func (r *rankings) of(user schemas.UserID) *ranking {
	if held := r.young[user]; held != nil {
		return held
	}
	held := r.old[user]
	if held != nil {
		r.put(user, held)
	}
	return held
}

func (r *rankings) put(user schemas.UserID, of *ranking) {
	if r.facets > maxRanked {
		r.young, r.old, r.facets = map[schemas.UserID]*ranking{}, r.young, 0
	}
	r.young[user] = of
	r.facets += 1 + len(of.strongest)
}

func (r *rankings) drop(user schemas.UserID) {
	delete(r.young, user)
	delete(r.old, user)
}
