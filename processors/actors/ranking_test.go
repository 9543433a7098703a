package actors

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// TestRanking_EqualsSortOfAllAffinities changes random affinities and deletes authors. If a ranking returns the strongest
// affinities, they must be those of all affinities.
func TestRanking_EqualsSortOfAllAffinities(t *testing.T) {
	const n, halfLife = 3, time.Hour
	rapid.Check(t, func(t *rapid.T) {
		all, deleted := map[schemas.ID]decay.Amount{}, deletedtest.Of()
		read := func() *ranking {
			r := &ranking{}
			for id, d := range all {
				if !ofDeletedAuthor(id, deleted) {
					r.add(id, d, halfLife, 2*n)
				}
			}
			return r
		}
		r, now := read(), schemas.Micros(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += schemas.Micros(rapid.IntRange(0, 3).Draw(t, "pause")) * 1e9
			id := schemas.ID(fmt.Sprintf("user:%d", rapid.IntRange(0, 12).Draw(t, "facet")))
			if rapid.IntRange(0, 19).Draw(t, "delete") == 0 {
				deleted.Note(schemas.UserID(id), 0)
				continue
			}
			if deleted.Has(schemas.UserID(id)) {
				continue // no facet of an action, see facets
			}
			all[id] = all[id].Plus(rapid.SampledFrom([]float64{0.1, 0.1, 1, -1}).Draw(t, "weight"), now, halfLife)
			r.set(id, all[id], halfLife, 2*n)
			var want []schemas.Affinity
			for id, d := range all {
				if !ofDeletedAuthor(id, deleted) {
					want = append(want, schemas.Affinity{Facet: id, Value: d.At(now, halfLife)})
				}
			}
			got, ok := r.top(n, now, halfLife, deleted)
			if !ok {
				r = read()
				if got, ok = r.top(n, now, halfLife, deleted); !ok {
					t.Fatal("not exact right after all affinities were read")
				}
			}
			expect.NoDiff(t, got, strongest(want, n), "top")
		}
	})
}

// A ranking that holds fewer affinities than are sent is complete only if there were no others.
func TestRanking_TopReportsMissingAffinities(t *testing.T) {
	const halfLife = time.Hour
	for name, c := range map[string]struct {
		facets, decreased int
		want              bool
	}{
		"all are held":          {6, 0, true},
		"half of them are left": {8, 3, true},
		"too few are left":      {8, 4, false},
		"there are no others":   {6, 4, true},
	} {
		r := &ranking{}
		facet := func(n int) schemas.ID { return schemas.ID(fmt.Sprintf("board:%d", n)) }
		for n := range c.facets {
			r.add(facet(n), decay.Amount{Value: float64(100 - n)}, halfLife, 6)
		}
		for n := range c.decreased {
			r.set(facet(n), decay.Amount{Value: -1}, halfLife, 6)
		}
		if _, ok := r.top(3, 0, halfLife, deletedtest.Of()); ok != c.want {
			t.Errorf("%s: complete %t, want %t", name, ok, c.want)
		}
	}
}

func TestRankings_DropLeastRecentlyUsed(t *testing.T) {
	r := newRankings()
	full := func() *ranking { return &ranking{strongest: make([]rankedFacet, 99)} }
	users := 2 * maxRanked / 100
	for n := range users + 100 {
		r.put(schemas.UserID(fmt.Sprintf("user:%d", n)), full())
		r.of("user:0")
	}
	expect.True(t, r.of("user:0") != nil && r.of("user:1") == nil, "only the ranking that is always used is kept")
	expect.AtMost(t, len(r.young)+len(r.old), users+3, "kept rankings")
	r.drop("user:0")
	expect.Equal(t, r.of("user:0"), nil, "a dropped ranking")
}
