// Package rules makes a chunk from a user's candidates: it selects and orders the items, and returns the memory for the next
// visit. All functions are pure. Random numbers depend on a seed.
//
// Make runs five steps. A feed can disable each of them; see Feed.
//
//  1. rescore: compute the score in the response from the current signals.
//  2. deferWeak: defer weak candidates beyond the budget of the session; see Defer.
//  3. explore: draw scores for new pins and pins of new authors; see Explore.
//  4. arrange: give each place to the source that is due, which fills it with its best item that the caps admit; see Caps. Or
//     randomize: draw the source and the item of each place; see Randomize. Both reduce the scores of candidates that are
//     similar to items above; see Spacing. The sources of Feed.Fill get the places that are left; see place.go.
//  5. remember: return the shares, the session and the deferred candidates after the visit; see schemas.Memory.
//
// Within a chunk that is not randomized, the items of one source are in descending order of the score in the response. A rule may
// skip an item, which is then not in this chunk, but never places it behind a weaker item.
package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Pool holds the waiting candidates of a user and a source, best first by write-time score.
type Pool struct {
	Source     schemas.Source
	Candidates []Candidate
}

// Candidate is a pin that may be shown to the user.
type Candidate = schemas.Candidate

// Visit is the request for a chunk.
type Visit struct {
	User   schemas.UserID
	Time   schemas.Micros
	Limit  int            // items, at least 1
	Memory schemas.Memory // after the user's last visit; not modified
}

// Chunk is the result of a visit.
type Chunk struct {
	Items   []schemas.ServedItem
	Memory  schemas.Memory
	Expired []schemas.PinID // deferred for too long; no longer candidates
	Relaxed Relaxation      // relaxation level of the caps
	Weak    []schemas.PinID // weak pins within the budget, shown or not; weaker ones were deferred
	Options []schemas.PinID // pins that a place was drawn from, with repeats; empty without Randomize
}

// Make returns the chunk of a visit.
func (f Feed) Make(v Visit, pools []Pool, k Signals) Chunk {
	d := f.decide(v, pools, k, "")
	chunk := Chunk{Items: d.list, Memory: d.remember(&v, d.arrangement), Expired: d.expired, Relaxed: d.relaxed, Weak: d.weak}
	for _, options := range d.options {
		for i := range options {
			chunk.Options = append(chunk.Options, options[i].Pin)
		}
	}
	return chunk
}

// decision is the result of the rules for the candidates of a visit.
type decision struct {
	*selection
	*arrangement
	relaxed  Relaxation
	explored []item // exploration draws, the highest first
	admitted Caps   // of the places that explored items may fill
}

// decide applies the rules up to arrange: first to the sources with shares, then to those of Fill. The candidates of each source
// remain in order. Fill does not affect the places that the shares filled, nor which weak candidates are deferred. The
// arrangement records which cap skipped the pin watch.
func (f Feed) decide(v Visit, pools []Pool, k Signals, watch schemas.PinID) (d decision) {
	d.selection = f.deferWeak(&v, f.rescore(pools, k))
	if f.explores(k) || f.randomizes() {
		d.memory.Draws++
	}
	d.arrangement = newArrangement(f, v.Memory.Mix, watch, k.Vectors)
	f.place(&d, &v, d.queues, k)
	d.shared = len(d.list)
	if !slices.ContainsFunc(pools, func(p Pool) bool { return f.Fills(p.Source) }) {
		return d
	}
	filling := f.filling()
	fill := filling.rescore(pools, k)
	d.all = slices.Concat(d.all, fill)
	if len(d.list) < v.Limit {
		left := withoutPins(fill, d.withheld)
		filling.place(&d, &v, left, k)
	}
	return d
}

// Waiting returns the pins that a visit without a limit would show, in no particular order.
func (f Feed) Waiting(v Visit, pools []Pool, k Signals) []schemas.PinID {
	var pins []schemas.PinID
	seen := map[schemas.PinID]struct{}{}
	for _, q := range f.deferWeak(&v, f.rescore(pools, k)).queues {
		for i := range q.items {
			pin := q.items[i].Pin
			if _, repeated := seen[pin]; !repeated {
				seen[pin] = struct{}{}
				pins = append(pins, pin)
			}
		}
	}
	return pins
}
