package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Fate is what the rules do with a candidate in a visit.
type Fate string

// The fates.
const (
	Shown    Fate = "shown"    // it is in the chunk
	Waits    Fate = "waits"    // the chunk is full before it comes to it
	Capped   Fate = "capped"   // a cap passed it over
	Held     Fate = "held"     // it is weak, and the session's budget is spent
	Deferred Fate = "deferred" // it is kept for a later session
	GivenUp  Fate = "expired"  // it was deferred for too long
	NoShare  Fate = "no share" // its sources have no share in the feed
)

// Explanation says what the rules do with one candidate, and why.
type Explanation struct {
	Fate   Fate
	Place  int            // in the chunk, from 1, if it is shown
	Source schemas.Source // that gave it, if it is shown
	Score  float64        // that is answered, if it is shown
	Cap    string         // that passed it over: "author", "board" or "interest"
	Since  schemas.Micros // the visit that deferred it; 0: it was not
	Scores []SourceScore  // by source, in the order of the pools
}

// SourceScore is the score of a candidate of one source.
type SourceScore struct {
	Source schemas.Source
	Parts  Parts
	Rank   int // after re-scoring, from 1
}

// Explain says what Make does with a pin. A pin that is in none of the pools has no scores.
func (f Feed) Explain(v Visit, pools []Pool, k Known, pin schemas.PinID) Explanation {
	e := Explanation{Scores: f.scores(pools, k, pin), Since: since(&v.Memory, pin)}
	chunk, a := f.watch(v, pools, k, pin)
	at := slices.IndexFunc(chunk.Items, func(it schemas.ServedItem) bool { return it.Pin == pin })
	e.Cap = a.broken
	switch {
	case at >= 0:
		e.Fate, e.Place, e.Cap = Shown, at+1, ""
		e.Source, e.Score = chunk.Items[at].Source, chunk.Items[at].Score
	case slices.Contains(chunk.Expired, pin):
		e.Fate = GivenUp
	case len(e.Scores) == 0:
		e.Fate = NoShare
	default:
		e.Fate = f.heldBack(v, pools, k, pin, a)
	}
	return e
}

// heldBack is the fate of a candidate that is not in the chunk.
func (f Feed) heldBack(v Visit, pools []Pool, k Known, pin schemas.PinID, a *arrangement) Fate {
	h := f.hold(&v, f.rescore(pools, k))
	switch {
	case slices.ContainsFunc(h.held, func(w heldItem) bool { return w.pin == pin }):
		return Held
	case since(&h.memory, pin) >= h.memory.Began && since(&h.memory, pin) > 0:
		return Deferred
	case a.broken != "":
		return Capped
	}
	return Waits
}

// since is when a pin was deferred, 0 if it is not.
func since(m *schemas.Memory, pin schemas.PinID) schemas.Micros {
	for _, d := range m.Deferred {
		if d.Pin == pin {
			return d.Since
		}
	}
	return 0
}

func (f Feed) scores(pools []Pool, k Known, pin schemas.PinID) []SourceScore {
	s := f.scorer(k)
	var list []SourceScore
	for _, q := range f.rescore(pools, k) {
		rank := slices.IndexFunc(q.items, func(it item) bool { return it.Pin == pin })
		if rank < 0 {
			continue
		}
		for _, p := range pools {
			if p.Source != q.source {
				continue
			}
			at := slices.IndexFunc(p.Candidates, func(c Candidate) bool { return c.Pin == pin })
			list = append(list, SourceScore{Source: q.source, Parts: s.parts(&p.Candidates[at]), Rank: rank + 1})
		}
	}
	return list
}
