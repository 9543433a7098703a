package rules

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// place gives the places that are left to the sources of the queues, and to draws from their new pins if exploration has filled
// no place yet.
func (f Feed) place(d *decision, v *Visit, queues []queue, k Signals) {
	explores := f.explores(k) && !slices.ContainsFunc(d.list, func(it schemas.ServedItem) bool { return it.Source == schemas.Explore })
	if explores {
		drawn := f.explore(v.seed(), queues, k.Counts)
		queues, d.explored = append(slices.Clip(queues), drawn), drawn.items
	}
	var relaxed Relaxation
	if f.randomizes() {
		relaxed = f.randomize(d.arrangement, v, queues)
	} else {
		d.arrangement, relaxed = f.arrange(d.arrangement, v.Limit, queues)
	}
	if explores {
		d.admitted = d.near.caps
	}
	if relaxed != NotRelaxed {
		d.relaxed = relaxed
	}
}

// filling returns the feed that mixes the sources of Fill. Each has the sum of all shares, so exploration has the same share
// among them as among the other sources.
func (f Feed) filling() Feed {
	sum := 0.0
	for source, share := range f.Shares {
		if source != schemas.Explore {
			sum += share
		}
	}
	shares := map[schemas.Source]float64{schemas.Explore: f.Shares[schemas.Explore]}
	for _, source := range f.Fill {
		shares[source] = cmp.Or(max(sum, f.DefaultShare), 1) // all shares are 0: only Fill shows pins
	}
	f.Shares, f.DefaultShare = shares, 0
	return f
}

// withoutWithheld removes the pins that a rule defers or that were deferred for too long: another source must not show them.
func (s *selection) withoutWithheld(queues []queue) []queue {
	if s.feed.Defer.Margin == 0 {
		return queues
	}
	withheld := make(map[schemas.PinID]bool, len(s.overBudget)+len(s.expired)+len(s.memory.Deferred))
	for _, pin := range s.overBudget {
		withheld[pin] = true
	}
	for _, pin := range s.expired {
		withheld[pin] = true
	}
	for _, d := range s.memory.Deferred {
		withheld[d.Pin] = withheld[d.Pin] || d.Since >= s.memory.Began
	}
	for i := range queues {
		queues[i].items = slices.DeleteFunc(slices.Clone(queues[i].items), func(it item) bool { return withheld[it.Pin] })
	}
	return queues
}
