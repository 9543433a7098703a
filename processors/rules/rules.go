// Package rules makes a chunk of the candidates of a user: which items, in what order, and what has to be remembered.
// Everything here is a pure function of its arguments; chance comes as a seed.
//
// A chunk is made in five steps, each of which a feed can leave out (see Feed):
//
//  1. rescore: every candidate gets the score that is answered, with what is known now
//  2. hold: weak candidates beyond the session's budget are held back, see Defer
//  3. explore: lots are drawn for new pins and pins of new authors, see Explore
//  4. arrange: each place goes to the source that is due, which gives its best item that the caps admit, see Caps
//  5. remember: shares, session and deferred candidates after the visit, see schemas.Memory
//
// Of one source the items of a chunk descend in the answered score: a rule may skip an item, and then it is not in this
// chunk, but never puts it behind a weaker one.
package rules

import "github.com/smartfeed/smartfeed/schemas"

// Pool is what waits for a user from one source, best first by write-time score.
type Pool struct {
	Source     schemas.Source
	Candidates []Candidate
}

// Candidate is a pin that may be shown to the user.
type Candidate struct {
	Pin     schemas.PinID
	Score   float64 // write-time, see package score
	Created schemas.Micros
	schemas.Facets
}

// Visit is what a chunk is made for.
type Visit struct {
	User   schemas.UserID
	Time   schemas.Micros
	Limit  int            // items, at least 1
	Memory schemas.Memory // of the user's last visit; it is not changed
}

// Known is what is known now beside the pools. All of it may be missing: then the rules that need it add nothing.
type Known struct {
	Affinities []schemas.Affinity
	Counts     Counts                    // nil: not known
	Model      map[schemas.PinID]float64 // what a model adds to a score
}

// Counts says how often pins were shown and saved.
type Counts interface {
	Pin(pin schemas.PinID) Count
	Author(author schemas.UserID) Count // of all their pins
}

// Count is how often something was shown and saved.
type Count struct{ Impressions, Saves int64 }

// Chunk is what a visit shows.
type Chunk struct {
	Items   []schemas.ServedItem
	Memory  schemas.Memory
	Expired []schemas.PinID  // deferred for too long: candidates no more
	Relaxed Relaxation       // how far the caps had to give way
	Short   []schemas.Source // that are below their share for want of candidates, see short
	Weak    []schemas.PinID  // that the session's budget had room for, shown or not: others were held back for them
}

// Make makes the chunk of a visit.
func (f Feed) Make(v Visit, pools []Pool, k Known) Chunk {
	c, _ := f.watch(v, pools, k, "")
	return c
}

// watch is Make with an eye on one pin.
func (f Feed) watch(v Visit, pools []Pool, k Known, pin schemas.PinID) (Chunk, *arrangement) {
	h := f.hold(&v, f.rescore(pools, k))
	queues := h.queues
	if f.explores(k) {
		queues = append(queues, f.lots(&v, h.queues, k.Counts))
		h.memory.Draws++
	}
	a, relaxed := f.arrange(v.Limit, queues, v.Memory.Mix, pin)
	return Chunk{
		Items: a.list, Memory: h.remember(&v, a), Expired: h.expired,
		Relaxed: relaxed, Short: f.short(a.mix.counts), Weak: h.allowed(),
	}, a
}

// Waiting returns the pins that a visit without a limit would show, in no order.
func (f Feed) Waiting(v Visit, pools []Pool, k Known) []schemas.PinID {
	var pins []schemas.PinID
	met := map[schemas.PinID]struct{}{}
	for _, q := range f.hold(&v, f.rescore(pools, k)).queues {
		for i := range q.items {
			pin := q.items[i].Pin
			if _, again := met[pin]; !again {
				met[pin] = struct{}{}
				pins = append(pins, pin)
			}
		}
	}
	return pins
}
