package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// MaxDeferred is how many candidates of a user are deferred at most. What is held back beyond it is only not shown.
const MaxDeferred = 200

// holding is what a session lets through, and what it holds back.
type holding struct {
	feed    Feed
	queues  []queue        // what may be shown
	weak    []heldItem     // of it, the least weak first
	held    []heldItem     // what may not for the budget alone, the least weak first
	memory  schemas.Memory // with the session that the visit belongs to, and without what has expired
	expired []schemas.PinID
}

// heldItem is a weak item.
type heldItem struct {
	pin    schemas.PinID
	margin float64 // above the floor, negative
}

// hold keeps weak candidates back. A candidate of one of the pipeline's sources is weak when its score is more than the
// floor below the best that its source offered to the session. (Scores of other sources are on scales of their own.) Of
// the weak ones as many as are left of the session's budget may be shown, the least weak first. A deferred candidate is
// held back to the end of the session that deferred it, and is not weak in a later one.
func (f Feed) hold(v *Visit, queues []queue) *holding {
	h := &holding{feed: f, queues: queues, memory: v.Memory}
	if f.Defer.Floor == 0 {
		return h
	}
	h.begin(v.Time)
	stand := h.expire(v.Time)
	h.lift(queues)
	if len(stand) == 0 && !f.anyWeak(queues, h.memory.Best) {
		return h
	}
	held := h.allow(f.weakest(queues, stand, h.memory.Best))
	h.queues = make([]queue, len(queues))
	for i, q := range queues {
		h.queues[i] = queue{source: q.source, items: through(q, stand, held)}
	}
	return h
}

// begin begins a session if the last visit was long ago.
func (h *holding) begin(now schemas.Micros) {
	m := &h.memory
	m.Best = maps.Clone(m.Best)
	if m.Best == nil || now-m.Visited > micros(h.feed.Defer.Session) {
		m.Began, m.Weak, m.Best = now, 0, map[string]float64{}
	}
	m.Visited = max(m.Visited, now)
}

func micros(d time.Duration) schemas.Micros { return schemas.Micros(d / time.Microsecond) }

// standing is what becomes of a deferred candidate in this session.
type standing int

const (
	undeferred standing = iota
	returning           // it was deferred in an earlier one: it may be shown
	deferred            // it was deferred in this one
	expired
)

// expire takes what was deferred too long ago off the list, and returns how the others and these stand.
func (h *holding) expire(now schemas.Micros) map[schemas.PinID]standing {
	m := &h.memory
	stand := make(map[schemas.PinID]standing, len(m.Deferred))
	var kept []schemas.Deferred
	for _, d := range m.Deferred {
		switch {
		case d.Since >= m.Began:
			stand[d.Pin] = deferred
		case now-d.Since > micros(h.feed.Defer.Expiry):
			stand[d.Pin] = expired
			h.expired = append(h.expired, d.Pin)
			continue
		default:
			stand[d.Pin] = returning
		}
		kept = append(kept, d)
	}
	m.Deferred = kept
	return stand
}

// lift raises the session's best scores to what is offered now.
func (h *holding) lift(queues []queue) {
	for _, q := range queues {
		if len(q.items) == 0 || !Graded(q.source) {
			continue
		}
		best, known := h.memory.Best[string(q.source)]
		if top := q.items[0].score; !known || top > best {
			h.memory.Best[string(q.source)] = top
		}
	}
}

// Graded says whether a source's scores are on the pipeline's scale, see package score.
func Graded(s schemas.Source) bool {
	return s == schemas.Following || s == schemas.FromInterest || s == schemas.Related
}

// margin is how far a score is above the floor of its source; of a source without one it is 0.
func (f Feed) margin(q *queue, score float64, best map[string]float64) float64 {
	if !Graded(q.source) {
		return 0
	}
	return score - (best[string(q.source)] - f.Defer.Floor)
}

// anyWeak says whether a queue ends with a weak item.
func (f Feed) anyWeak(queues []queue, best map[string]float64) bool {
	for i := range queues {
		q := &queues[i]
		if n := len(q.items); n > 0 && f.margin(q, q.items[n-1].score, best) < 0 {
			return true
		}
	}
	return false
}

// weakest returns the pins that are weak in every source that has them, the least weak first, without what was
// deferred before.
func (f Feed) weakest(queues []queue, stand map[schemas.PinID]standing, best map[string]float64) []heldItem {
	margins := map[schemas.PinID]float64{}
	for i := range queues {
		q := &queues[i]
		for j := range q.items {
			it := &q.items[j]
			margin := f.margin(q, it.score, best)
			if known, ok := margins[it.Pin]; !ok || margin > known {
				margins[it.Pin] = margin
			}
		}
	}
	var list []heldItem
	for pin, margin := range margins {
		if margin < 0 && stand[pin] == undeferred {
			list = append(list, heldItem{pin, margin})
		}
	}
	slices.SortFunc(list, func(a, b heldItem) int {
		return cmp.Or(cmp.Compare(b.margin, a.margin), cmp.Compare(a.pin, b.pin))
	})
	return list
}

// allow divides weak items into those that the budget has room for and those that are held back, which it returns.
func (h *holding) allow(weak []heldItem) map[schemas.PinID]bool {
	left := int(max(int64(h.feed.Defer.Budget)-h.memory.Weak, 0))
	left = min(left, len(weak))
	h.weak, h.held = weak[:left], weak[left:]
	held := make(map[schemas.PinID]bool, len(h.held))
	for _, w := range h.held {
		held[w.pin] = true
	}
	return held
}

// allowed are the weak pins that the budget has room for, the least weak first.
func (h *holding) allowed() []schemas.PinID {
	list := make([]schemas.PinID, len(h.weak))
	for i, w := range h.weak {
		list[i] = w.pin
	}
	return list
}

// through returns the items of a queue that may be shown.
func through(q queue, stand map[schemas.PinID]standing, held map[schemas.PinID]bool) []item {
	items := make([]item, 0, len(q.items))
	for i := range q.items {
		pin := q.items[i].Pin
		if s := stand[pin]; held[pin] || s == deferred || s == expired {
			continue
		}
		items = append(items, q.items[i])
	}
	return items
}

// remember returns what is to be remembered after a visit. What is deferred is what the budget alone kept out of the
// chunk: as many weak items as it is short of the limit.
func (h *holding) remember(v *Visit, a *arrangement) schemas.Memory {
	m := h.memory
	m.Mix = a.mix.after()
	if h.feed.Defer.Floor == 0 {
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
