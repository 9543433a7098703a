package rules

import (
	"cmp"
	"maps"
	"slices"

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
	withheld   map[schemas.PinID]bool // has the deferred, expired and weak pins; true: not to be shown in this session
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
	s.expire(v.Time)
	s.raiseBest(queues)
	if len(s.withheld) == 0 && !f.anyWeak(queues, s.memory.Best) {
		return s
	}
	s.applyBudget(s.weakest())
	s.queues = withoutPins(queues, s.withheld)
	return s
}

// startSession starts a session if the last visit was more than Session ago.
func (s *selection) startSession(now schemas.Micros) {
	m := &s.memory
	m.Best = maps.Clone(m.Best)
	if m.Best == nil || now-m.Visited > schemas.MicrosIn(s.feed.Defer.SessionTimeout) {
		m.Began, m.Weak, m.Best = now, 0, map[string]schemas.RankScore{}
	}
	m.Visited = max(m.Visited, now)
}

// expire removes candidates that were deferred too long ago. It withholds these and those that this session deferred. Those that
// an earlier session deferred may be shown.
func (s *selection) expire(now schemas.Micros) {
	m := &s.memory
	s.withheld = make(map[schemas.PinID]bool, len(m.Deferred))
	var kept []schemas.Deferred
	for _, d := range m.Deferred {
		isOld := d.Since < m.Began
		if isOld && now-d.Since > schemas.MicrosIn(s.feed.Defer.Expiry) {
			s.expired, s.withheld[d.Pin] = append(s.expired, d.Pin), true
			continue
		}
		kept, s.withheld[d.Pin] = append(kept, d), !isOld
	}
	m.Deferred = kept
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
func (s *selection) weakest() []schemas.PinID {
	margins := map[schemas.PinID]float64{} // scores above the threshold
	for i := range s.all {
		q := &s.all[i]
		for j := range q.items {
			it := &q.items[j]
			margin := s.feed.margin(q, it.rankScore, s.memory.Best)
			if known, ok := margins[it.Pin]; !ok || margin > known {
				margins[it.Pin] = margin
			}
		}
	}
	var list []schemas.PinID
	for pin, margin := range margins {
		if _, known := s.withheld[pin]; margin < 0 && !known {
			list = append(list, pin)
		}
	}
	slices.SortFunc(list, func(a, b schemas.PinID) int {
		return cmp.Or(cmp.Compare(margins[b], margins[a]), cmp.Compare(a, b))
	})
	return list
}

// applyBudget splits the weak pins into those within the budget and those beyond it, which it withholds.
func (s *selection) applyBudget(weak []schemas.PinID) {
	left := int(max(int64(s.feed.Defer.Budget)-s.memory.Weak, 0))
	left = min(left, len(weak))
	s.weak, s.overBudget = weak[:left], weak[left:]
	for _, pin := range s.overBudget {
		s.withheld[pin] = true
	}
}

// DeferredCandidates returns the candidates that a visit leaves to a later session: first deferred ones, in order of their
// deferral, then weak ones, the least weak first.
func (f Feed) DeferredCandidates(v Visit, pools []Pool, k Signals) []schemas.DeferredCandidate {
	s := f.deferWeak(&v, f.rescore(pools, k))
	waits := map[schemas.PinID]bool{}
	for i := range s.all {
		for j := range s.all[i].items {
			waits[s.all[i].items[j].Pin] = true
		}
	}
	var list []schemas.DeferredCandidate
	for _, d := range s.memory.Deferred {
		if d.Since >= s.memory.Began && waits[d.Pin] {
			list = append(list, schemas.DeferredCandidate{Pin: d.Pin, Reason: schemas.ReasonDeferredEarlier, Since: schemas.Timestamp(d.Since)})
		}
	}
	for _, pin := range s.overBudget {
		list = append(list, schemas.DeferredCandidate{Pin: pin, Reason: schemas.ReasonWeak})
	}
	return list
}
