package actors

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// decayed is a sum of weights that halve with every half-life, as of the newest weight's time. The zero value is the sum of
// no weights.
type decayed struct {
	sum  float64
	time schemas.Micros
}

// add returns the sum with another weight of time at, which may be older than the weights in it.
func (d decayed) add(weight float64, at schemas.Micros, halfLife time.Duration) decayed {
	switch {
	case d == decayed{}:
		return decayed{weight, at}
	case at <= d.time: // keep the time: as of a much older time, the sum could be infinite
		return decayed{d.sum + weight*decay.Factor(at, d.time, halfLife), d.time}
	}
	return decayed{d.sum*decay.Factor(d.time, at, halfLife) + weight, at}
}

// at returns the sum as of now, which may be before the newest weight's time.
func (d decayed) at(now schemas.Micros, halfLife time.Duration) float64 {
	return d.sum * decay.Factor(d.time, now, halfLife)
}

// reaches returns when the sum decays to target if no weight is added. The result may be in the past. The sum and target
// must have the same sign, and neither may be 0.
func (d decayed) reaches(target float64, halfLife time.Duration) schemas.Micros {
	return d.time + schemas.Micros(math.Ceil(math.Log2(d.sum/target)*float64(micros(halfLife))))
}

// micros converts a duration to the unit of event times.
func micros(d time.Duration) schemas.Micros { return schemas.Micros(d / time.Microsecond) }

// facets returns the facets of an action: author, board and interests of its pin at the time of the action. They exclude the
// actor and deleted authors.
func facets(a *schemas.EnrichedAction, deleted DeletedUsers) []schemas.ID {
	f := a.ObjectAttributes.Facets
	if f.Author == a.Actor || deleted.Has(f.Author) {
		f.Author = ""
	}
	all := make([]schemas.ID, 0, 2+len(f.Interests))
	for id := range f.Followees {
		all = append(all, schemas.ID(id))
	}
	return all
}

// negligible is the smallest affinity that is sent: a hundredth of a view.
const negligible = 0.001

// strongest returns the n greatest affinities of at least negligible, greatest first, with ties by facet. It reorders all.
func strongest(all []schemas.Affinity, n int) []schemas.Affinity {
	all = slices.DeleteFunc(all, func(a schemas.Affinity) bool { return a.Value < negligible })
	slices.SortFunc(all, func(a, b schemas.Affinity) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Facet, b.Facet))
	})
	return all[:min(n, len(all))]
}

// weakest returns all affinities but the keep strongest by absolute value, with ties by facet. It reorders all.
func weakest(all []schemas.Affinity, keep int) []schemas.Affinity {
	slices.SortFunc(all, func(a, b schemas.Affinity) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)), cmp.Compare(a.Facet, b.Facet))
	})
	return all[min(keep, len(all)):]
}
