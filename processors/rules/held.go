package rules

import "github.com/smartfeed/smartfeed/schemas"

// HeldBack is a candidate that a visit leaves to a later session.
type HeldBack struct {
	Pin   schemas.PinID
	Fate  Fate           // Deferred, or Held if only the budget of the session holds it back
	Since schemas.Micros // time of the visit that deferred it; 0: not deferred
}

// HeldBack returns the candidates that a visit leaves to a later session: first deferred ones, in order of their deferral,
// then held ones, the least weak first.
func (f Feed) HeldBack(v Visit, pools []Pool, k Known) []HeldBack {
	queues := f.rescore(pools, k)
	h := f.hold(&v, queues)
	waits := map[schemas.PinID]bool{}
	for i := range queues {
		for j := range queues[i].items {
			waits[queues[i].items[j].Pin] = true
		}
	}
	var list []HeldBack
	for _, d := range h.memory.Deferred {
		if d.Since >= h.memory.Began && waits[d.Pin] {
			list = append(list, HeldBack{Pin: d.Pin, Fate: Deferred, Since: d.Since})
		}
	}
	for _, w := range h.held {
		list = append(list, HeldBack{Pin: w.pin, Fate: Held})
	}
	return list
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
