package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Fate is what the rules do with a candidate during a visit.
type Fate string

// The fates.
const (
	Shown           Fate = "shown"    // it is in the chunk
	Waits           Fate = "waits"    // the chunk is full without it
	Capped          Fate = "capped"   // a cap skipped it
	Held            Fate = "held"     // it is weak, and the budget of the session is spent
	Deferred        Fate = "deferred" // it is deferred to a later session
	DeferralExpired Fate = "expired"  // it was deferred for too long
	NoShare         Fate = "no share" // its sources have no share in the feed
)

// Explanation describes what the rules do with one candidate, and why.
type Explanation struct {
	Fate      Fate
	Place     int               // position in the chunk, from 1, if shown
	Source    schemas.Source    // source that contributed it, if shown
	RankScore schemas.RankScore // score in the response, if shown
	Cap       string            // cap that skipped it: "author", "board" or "interest"
	Since     schemas.Micros    // time of the visit that deferred it; 0: not deferred
	Scores    []SourceScore     // by source, in the order of the pools
}

// SourceScore is the score of a candidate in one source.
type SourceScore struct {
	Source schemas.Source
	Parts  Parts
	Rank   int // after re-scoring, from 1
}

// Explain returns what Make does with a pin. A pin that is in none of the pools has no scores.
func (f Feed) Explain(v Visit, pools []Pool, k Known, pin schemas.PinID) Explanation {
	e := Explanation{Scores: f.scores(pools, k, pin), Since: since(&v.Memory, pin)}
	chunk, a := f.watch(v, pools, k, pin)
	at := slices.IndexFunc(chunk.Items, func(it schemas.ServedItem) bool { return it.Pin == pin })
	e.Cap = a.broken
	switch {
	case at >= 0:
		e.Fate, e.Place, e.Cap = Shown, at+1, ""
		e.Source, e.RankScore = chunk.Items[at].Source, chunk.Items[at].RankScore
	case slices.Contains(chunk.Expired, pin):
		e.Fate = DeferralExpired
	case len(e.Scores) == 0:
		e.Fate = NoShare
	default:
		e.Fate = f.heldBack(v, pools, k, pin, a)
	}
	return e
}

// heldBack returns the fate of a candidate that is not in the chunk.
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

// since returns when a pin was deferred, or 0 if it is not.
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
