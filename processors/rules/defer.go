package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// MaxDeferred is the maximum number of a user's deferred candidates. Further ones are not shown and not stored.
const MaxDeferred = 200

// selection is the result of deferWeak: the items that a session shows and those that it defers.
type selection struct {
	feed       Feed
	all        []queue         // all items
	queues     []queue         // items that may be shown
	weak       []schemas.PinID // weak items within the budget, the least weak first
	overBudget []schemas.PinID // weak items beyond the budget, the least weak first
	memory     schemas.Memory  // with the session of the visit, and without expired candidates
	expired    []schemas.PinID
}

// weakItem is a weak item.
type weakItem struct {
	pin    schemas.PinID
	margin float64 // score above the threshold; negative
}

// deferWeak defers weak candidates. A candidate of a built-in source is weak if its score is more than Margin below the best
// score of its source in the session. Scores of other sources have other scales and are never weak. The least weak
// candidates may be shown, up to the remaining budget of the session. A deferred candidate is not shown until the
// session that deferred it ends, and is not weak in a later one.
func (f Feed) deferWeak(v *Visit, queues []queue) *selection {
	s := &selection{feed: f, all: queues, queues: queues, memory: v.Memory}
	if f.Defer.Margin == 0 {
		return s
	}
	s.startSession(v.Time)
	deferrals := s.expire(v.Time)
	s.raiseBest(queues)
	if len(deferrals) == 0 && !f.anyWeak(queues, s.memory.Best) {
		return s
	}
	over := s.applyBudget(f.weakest(queues, deferrals, s.memory.Best))
	s.queues = make([]queue, len(queues))
	for i, q := range queues {
		s.queues[i] = queue{source: q.source, items: eligible(q, deferrals, over)}
	}
	return s
}

// startSession starts a session if the last visit was more than Session ago.
func (s *selection) startSession(now schemas.Micros) {
	m := &s.memory
	m.Best = maps.Clone(m.Best)
	if m.Best == nil || now-m.Visited > micros(s.feed.Defer.SessionTimeout) {
		m.Began, m.Weak, m.Best = now, 0, map[string]schemas.RankScore{}
	}
	m.Visited = max(m.Visited, now)
}

func micros(d time.Duration) schemas.Micros { return schemas.Micros(d / time.Microsecond) }

// deferral is the state of a deferred candidate in this session.
type deferral int

const (
	undeferred deferral = iota
	returning           // deferred in an earlier session: it may be shown
	deferred            // deferred in this session
	expired
)

// expire removes candidates that were deferred too long ago, and returns the deferrals of all deferred candidates.
func (s *selection) expire(now schemas.Micros) map[schemas.PinID]deferral {
	m := &s.memory
	deferrals := make(map[schemas.PinID]deferral, len(m.Deferred))
	var kept []schemas.Deferred
	for _, d := range m.Deferred {
		switch {
		case d.Since >= m.Began:
			deferrals[d.Pin] = deferred
		case now-d.Since > micros(s.feed.Defer.Expiry):
			deferrals[d.Pin] = expired
			s.expired = append(s.expired, d.Pin)
			continue
		default:
			deferrals[d.Pin] = returning
		}
		kept = append(kept, d)
	}
	m.Deferred = kept
	return deferrals
}

// raiseBest raises the best scores of the session to those of the queues.
func (s *selection) raiseBest(queues []queue) {
	for _, q := range queues {
		if len(q.items) == 0 || !Graded(q.source) {
			continue
		}
		best, known := s.memory.Best[string(q.source)]
		if top := q.items[0].rankScore; !known || top > best {
			s.memory.Best[string(q.source)] = top
		}
	}
}

// Graded reports whether the scores of a source are write-time scores, which are comparable; see package score.
func Graded(s schemas.Source) bool {
	return s == schemas.Following || s == schemas.FromInterest || s == schemas.Related
}

// margin returns how far a score is above the threshold of its source, or 0 if the source has none.
func (f Feed) margin(q *queue, score schemas.RankScore, best map[string]schemas.RankScore) float64 {
	if !Graded(q.source) {
		return 0
	}
	return float64(score-best[string(q.source)]) + f.Defer.Margin
}

// anyWeak reports whether a queue ends with a weak item.
func (f Feed) anyWeak(queues []queue, best map[string]schemas.RankScore) bool {
	for i := range queues {
		q := &queues[i]
		if n := len(q.items); n > 0 && f.margin(q, q.items[n-1].rankScore, best) < 0 {
			return true
		}
	}
	return false
}

// weakest returns the pins that are weak in every source that has them, the least weak first. It omits pins that were
// deferred before.
func (f Feed) weakest(queues []queue, deferrals map[schemas.PinID]deferral, best map[string]schemas.RankScore) []weakItem {
	margins := map[schemas.PinID]float64{}
	for i := range queues {
		q := &queues[i]
		for j := range q.items {
			it := &q.items[j]
			margin := f.margin(q, it.rankScore, best)
			if known, ok := margins[it.Pin]; !ok || margin > known {
				margins[it.Pin] = margin
			}
		}
	}
	var list []weakItem
	for pin, margin := range margins {
		if margin < 0 && deferrals[pin] == undeferred {
			list = append(list, weakItem{pin, margin})
		}
	}
	slices.SortFunc(list, func(a, b weakItem) int {
		return cmp.Or(cmp.Compare(b.margin, a.margin), cmp.Compare(a.pin, b.pin))
	})
	return list
}

// applyBudget splits the weak items into those within the budget and those beyond it. It returns the latter.
func (s *selection) applyBudget(weak []weakItem) map[schemas.PinID]bool {
	left := int(max(int64(s.feed.Defer.Budget)-s.memory.Weak, 0))
	left = min(left, len(weak))
	pins, over := make([]schemas.PinID, len(weak)), make(map[schemas.PinID]bool, len(weak)-left)
	for i, w := range weak {
		pins[i] = w.pin
		if i >= left {
			over[w.pin] = true
		}
	}
	s.weak, s.overBudget = pins[:left], pins[left:]
	return over
}

// eligible returns the items of a queue that may be shown.
func eligible(q queue, deferrals map[schemas.PinID]deferral, over map[schemas.PinID]bool) []item {
	items := make([]item, 0, len(q.items))
	for i := range q.items {
		pin := q.items[i].Pin
		if s := deferrals[pin]; over[pin] || s == deferred || s == expired {
			continue
		}
		items = append(items, q.items[i])
	}
	return items
}

// remember returns the memory after a visit. If the sources with shares leave places over, it defers weak items beyond the
// budget: as many as there are places.
func (s *selection) remember(v *Visit, a *arrangement) schemas.Memory {
	m := s.memory
	m.Mix = a.mix.after()
	if s.feed.Defer.Margin == 0 {
		return m
	}
	for _, pin := range s.weak {
		if a.taken[pin] {
			m.Weak++
		}
	}
	m.Deferred = slices.DeleteFunc(m.Deferred, func(d schemas.Deferred) bool { return a.taken[d.Pin] })
	room := min(v.Limit-a.shared, MaxDeferred-len(m.Deferred), len(s.overBudget))
	for _, pin := range s.overBudget[:max(room, 0)] {
		m.Deferred = append(m.Deferred, schemas.Deferred{Pin: pin, Since: v.Time})
	}
	return m
}

// DeferredCandidate is a candidate that a visit leaves to a later session.
type DeferredCandidate struct {
	Pin   schemas.PinID
	Fate  Fate           // Deferred, or Weak if this visit would defer it
	Since schemas.Micros // time of the visit that deferred it; 0: not deferred
}

// DeferredCandidates returns the candidates that a visit leaves to a later session: first deferred ones, in order of their
// deferral, then weak ones, the least weak first.
func (f Feed) DeferredCandidates(v Visit, pools []Pool, k Signals) []DeferredCandidate {
	s := f.deferWeak(&v, f.rescore(pools, k))
	waits := map[schemas.PinID]bool{}
	for i := range s.all {
		for j := range s.all[i].items {
			waits[s.all[i].items[j].Pin] = true
		}
	}
	var list []DeferredCandidate
	for _, d := range s.memory.Deferred {
		if d.Since >= s.memory.Began && waits[d.Pin] {
			list = append(list, DeferredCandidate{Pin: d.Pin, Fate: Deferred, Since: d.Since})
		}
	}
	for _, pin := range s.overBudget {
		list = append(list, DeferredCandidate{Pin: pin, Fate: Weak})
	}
	return list
}
