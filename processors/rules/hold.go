package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// MaxDeferred is the maximum number of a user's deferred candidates. Further held candidates are not shown and not stored.
const MaxDeferred = 200

// holding is the result of hold: the items that a session shows and those that it holds back.
type holding struct {
	feed    Feed
	all     []queue        // all items
	queues  []queue        // items that may be shown
	weak    []heldItem     // weak items among these, the least weak first
	held    []heldItem     // items that only the budget holds back, the least weak first
	memory  schemas.Memory // with the session of the visit, and without expired candidates
	expired []schemas.PinID
}

// heldItem is a weak item.
type heldItem struct {
	pin    schemas.PinID
	margin float64 // score above the threshold; negative
}

// hold holds back weak candidates. A candidate of a built-in source is weak if its score is more than Margin below the best
// score of its source in the session. Scores of other sources have other scales and are never weak. The least weak
// candidates may be shown, up to the remaining budget of the session. A deferred candidate is held back until the
// session that deferred it ends, and is not weak in a later one.
func (f Feed) hold(v *Visit, queues []queue) *holding {
	h := &holding{feed: f, all: queues, queues: queues, memory: v.Memory}
	if f.Defer.Margin == 0 {
		return h
	}
	h.startSession(v.Time)
	deferrals := h.expire(v.Time)
	h.raiseBest(queues)
	if len(deferrals) == 0 && !f.anyWeak(queues, h.memory.Best) {
		return h
	}
	held := h.applyBudget(f.weakest(queues, deferrals, h.memory.Best))
	h.queues = make([]queue, len(queues))
	for i, q := range queues {
		h.queues[i] = queue{source: q.source, items: eligible(q, deferrals, held)}
	}
	return h
}

// startSession starts a session if the last visit was more than Session ago.
func (h *holding) startSession(now schemas.Micros) {
	m := &h.memory
	m.Best = maps.Clone(m.Best)
	if m.Best == nil || now-m.Visited > micros(h.feed.Defer.SessionTimeout) {
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
func (h *holding) expire(now schemas.Micros) map[schemas.PinID]deferral {
	m := &h.memory
	deferrals := make(map[schemas.PinID]deferral, len(m.Deferred))
	var kept []schemas.Deferred
	for _, d := range m.Deferred {
		switch {
		case d.Since >= m.Began:
			deferrals[d.Pin] = deferred
		case now-d.Since > micros(h.feed.Defer.Expiry):
			deferrals[d.Pin] = expired
			h.expired = append(h.expired, d.Pin)
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
func (h *holding) raiseBest(queues []queue) {
	for _, q := range queues {
		if len(q.items) == 0 || !Graded(q.source) {
			continue
		}
		best, known := h.memory.Best[string(q.source)]
		if top := q.items[0].rankScore; !known || top > best {
			h.memory.Best[string(q.source)] = top
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
func (f Feed) weakest(queues []queue, deferrals map[schemas.PinID]deferral, best map[string]schemas.RankScore) []heldItem {
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
	var list []heldItem
	for pin, margin := range margins {
		if margin < 0 && deferrals[pin] == undeferred {
			list = append(list, heldItem{pin, margin})
		}
	}
	slices.SortFunc(list, func(a, b heldItem) int {
		return cmp.Or(cmp.Compare(b.margin, a.margin), cmp.Compare(a.pin, b.pin))
	})
	return list
}

// applyBudget splits the weak items into those within the budget and those that are held back. It returns the latter.
func (h *holding) applyBudget(weak []heldItem) map[schemas.PinID]bool {
	left := int(max(int64(h.feed.Defer.Budget)-h.memory.Weak, 0))
	left = min(left, len(weak))
	h.weak, h.held = weak[:left], weak[left:]
	held := make(map[schemas.PinID]bool, len(h.held))
	for _, w := range h.held {
		held[w.pin] = true
	}
	return held
}

// weakWithinBudget returns the weak pins within the budget, the least weak first.
func (h *holding) weakWithinBudget() []schemas.PinID {
	list := make([]schemas.PinID, len(h.weak))
	for i, w := range h.weak {
		list[i] = w.pin
	}
	return list
}

// eligible returns the items of a queue that may be shown.
func eligible(q queue, deferrals map[schemas.PinID]deferral, held map[schemas.PinID]bool) []item {
	items := make([]item, 0, len(q.items))
	for i := range q.items {
		pin := q.items[i].Pin
		if s := deferrals[pin]; held[pin] || s == deferred || s == expired {
			continue
		}
		items = append(items, q.items[i])
	}
	return items
}

// remember returns the memory after a visit. If the chunk is shorter than the limit, it defers weak items that
// only the budget held back: as many as are missing.
func (h *holding) remember(v *Visit, a *arrangement) schemas.Memory {
	m := h.memory
	m.Mix = a.mix.after()
	if h.feed.Defer.Margin == 0 {
		return m
	}
	for _, w := range h.weak {
		if a.taken[w.pin] {
			m.Weak++
		}
	}
	m.Deferred = slices.DeleteFunc(m.Deferred, func(d schemas.Deferred) bool { return a.taken[d.Pin] })
	room := min(v.Limit-len(a.list), MaxDeferred-len(m.Deferred), len(h.held))
	for _, w := range h.held[:max(room, 0)] {
		m.Deferred = append(m.Deferred, schemas.Deferred{Pin: w.pin, Since: v.Time})
	}
	return m
}

// DeferredCandidate is a candidate that a visit leaves to a later session.
type DeferredCandidate struct {
	Pin   schemas.PinID
	Fate  Fate           // Deferred, or Held if only the budget of the session holds it back
	Since schemas.Micros // time of the visit that deferred it; 0: not deferred
}

// DeferredCandidate returns the candidates that a visit leaves to a later session: first deferred ones, in order of their deferral,
// then held ones, the least weak first.
func (f Feed) DeferredCandidate(v Visit, pools []Pool, k Signals) []DeferredCandidate {
	h := f.hold(&v, f.rescore(pools, k))
	waits := map[schemas.PinID]bool{}
	for i := range h.all {
		for j := range h.all[i].items {
			waits[h.all[i].items[j].Pin] = true
		}
	}
	var list []DeferredCandidate
	for _, d := range h.memory.Deferred {
		if d.Since >= h.memory.Began && waits[d.Pin] {
			list = append(list, DeferredCandidate{Pin: d.Pin, Fate: Deferred, Since: d.Since})
		}
	}
	for _, w := range h.held {
		list = append(list, DeferredCandidate{Pin: w.pin, Fate: Held})
	}
	return list
}
