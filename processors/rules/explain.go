package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Explanation describes the outcome of the rules for one candidate, and its cause.
type Explanation struct {
	Fate      schemas.Fate
	Reason    schemas.Reason    // "": shown
	Place     int               // position in the chunk, from 1, if shown
	Source    schemas.Source    // source that fills the position, if shown
	RankScore schemas.RankScore // score in the response, if shown
	SimilarTo schemas.PinID     // most similar item above it, or in the chunk if not shown; "": none, or Spacing is disabled
	Since     schemas.Micros    // time of the visit that deferred it; 0: not deferred
	Scores    []SourceScore     // by source, in the order of the pools
}

// SourceScore is the score of a candidate in one source.
type SourceScore struct {
	Source    schemas.Source
	RankScore schemas.RankScore
	Parts     map[string]float64 // value that each current signal adds to the write-time score, by its name
	Rank      int                // after re-scoring, from 1
}

// Explain returns the outcome of Make for a pin. A pin that is in none of the pools has no scores.
func (f Feed) Explain(v Visit, pools []Pool, k Signals, pin schemas.PinID) Explanation {
	d := f.decide(v, pools, k, pin)
	e := Explanation{Fate: schemas.FateWaiting, Since: since(&v.Memory, pin), Scores: scoresOf(d.all, f.terms(k), pin)}
	at := slices.IndexFunc(d.list, func(it schemas.ServedItem) bool { return it.Pin == pin })
	above := d.list
	if at >= 0 {
		above = d.list[:at]
	}
	outranked := f.space(&e, above, k.Vectors, pin)
	switch deferredAt := since(&d.memory, pin); {
	case at >= 0:
		e.Fate, e.Place = schemas.FateNext, at+1
		e.Source, e.RankScore = d.list[at].Source, d.list[at].RankScore
	case slices.Contains(d.expired, pin):
		e.Fate, e.Reason = schemas.FateOut, schemas.ReasonDeferralExpired
	case len(e.Scores) == 0:
		e.Reason = schemas.ReasonNoShare
	case slices.Contains(d.overBudget, pin):
		e.Fate, e.Reason = schemas.FateDeferred, schemas.ReasonWeak
	case deferredAt >= d.memory.Began && deferredAt > 0:
		e.Fate, e.Reason = schemas.FateDeferred, schemas.ReasonDeferredEarlier
	case d.violated != "":
		e.Reason = schemas.Reason("cap_" + d.violated)
	case outranked:
		e.Reason = schemas.ReasonSimilar
	default:
		e.Reason = schemas.ReasonOutranked
	}
	return e
}

// space adds the reduction by Spacing to the scores of a pin below some items. It reports whether the pin would rank above one of
// these without the reduction.
func (f Feed) space(e *Explanation, items []schemas.ServedItem, vectors map[schemas.PinID]Vector, pin schemas.PinID) (decisive bool) {
	if f.Spacing.Strength == 0 {
		return false
	}
	most, to := mostSimilar(vectors, pin, items)
	e.SimilarTo = to
	for i := range e.Scores {
		s := &e.Scores[i]
		full := s.RankScore
		s.RankScore, s.Parts["spacing"] = reduced(s.Source, full, f.Spacing.Strength*most), -f.Spacing.Strength*most
		decisive = decisive || slices.ContainsFunc(items, func(it schemas.ServedItem) bool {
			return it.Source == s.Source && it.RankScore < full && it.RankScore >= s.RankScore
		})
	}
	return decisive
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

// scoresOf returns the scores of a pin in the queues that have it.
func scoresOf(queues []queue, terms []term, pin schemas.PinID) (list []SourceScore) {
	for _, q := range queues {
		if i := q.index(pin); i >= 0 {
			it := &q.items[i]
			list = append(list, SourceScore{Source: q.source, RankScore: it.rankScore, Parts: parts(it.Candidate, terms), Rank: i + 1})
		}
	}
	return list
}
