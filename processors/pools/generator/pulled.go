package generator

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pulled holds the best pins of every pulled followee, from the topic recents-pulled. Readers merge them into the pools of
// the followers. It is safe for concurrent use. The zero value is complete and holds no pins.
type Pulled struct {
	readiness

	mu    sync.RWMutex
	lists map[schemas.ID][]*schemas.PulledPin    // by followee, best first, without withdrawn pins
	pins  map[schemas.PinID][]*schemas.PulledPin // all slots that hold the pin
}

// NewPulled returns an empty Pulled. Change fills it; it is complete when ready is closed.
func NewPulled(ready <-chan struct{}) *Pulled { return &Pulled{readiness: ready} }

// Change replaces the pin of a slot. before is nil if the slot was empty, and after is nil if it becomes empty. It is a
// callback for topics.GlobalTable.OnChange.
func (p *Pulled) Change(_ string, before, after *schemas.PulledPin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before != nil {
		p.remove(before)
	}
	if after != nil {
		p.add(after)
	}
}

func (p *Pulled) add(e *schemas.PulledPin) {
	if p.lists == nil {
		p.lists, p.pins = map[schemas.ID][]*schemas.PulledPin{}, map[schemas.PinID][]*schemas.PulledPin{}
	}
	p.pins[e.Pin] = append(p.pins[e.Pin], e)
	if e.Withdrawn {
		return
	}
	list := p.lists[schemas.ID(e.Followee)]
	at, _ := slices.BinarySearchFunc(list, e, bestFirst)
	p.lists[schemas.ID(e.Followee)] = slices.Insert(list, at, e)
}

func (p *Pulled) remove(e *schemas.PulledPin) {
	same := func(other *schemas.PulledPin) bool { return other == e }
	if p.pins[e.Pin] = slices.DeleteFunc(p.pins[e.Pin], same); len(p.pins[e.Pin]) == 0 {
		delete(p.pins, e.Pin)
	}
	if e.Withdrawn {
		return
	}
	followee := schemas.ID(e.Followee)
	list := p.lists[followee]
	at, _ := slices.BinarySearchFunc(list, e, bestFirst)
	for at < len(list) && list[at] != e { // a pin that moves between slots can be in two for a short time
		at++
	}
	if at == len(list) {
		return
	}
	if p.lists[followee] = slices.Delete(list, at, at+1); len(p.lists[followee]) == 0 {
		delete(p.lists, followee)
	}
}

func bestFirst(a, b *schemas.PulledPin) int {
	return comparePlaces(a.BaseScore, a.Pin, b.BaseScore, b.Pin)
}

// newest returns the highest known version of a pin, or nil if it is in no slot.
func (p *Pulled) newest(pin schemas.PinID) *schemas.PulledPin {
	var best *schemas.PulledPin
	for _, e := range p.pins[pin] {
		if best == nil || e.Version > best.Version {
			best = e
		}
	}
	return best
}

// sources appends the sources of the user's pulled followees to a list, and sorts it.
func (p *Pulled) sources(follows map[schemas.ID]float32, to []schemas.Source) []schemas.Source {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for followee := range p.lists {
		source := schemas.Followee(followee).Source()
		if _, ok := follows[followee]; ok && !slices.Contains(to, source) {
			to = append(to, source)
		}
	}
	slices.Sort(to)
	return to
}

// queue returns the pulled pins of a source that a user's follows justify.
func (p *Pulled) queue(source schemas.Source, follows map[schemas.ID]float32) pulledQueue {
	var q pulledQueue
	if len(p.lists) < len(follows) {
		for followee, list := range p.lists {
			if weight, ok := follows[followee]; ok {
				q = q.with(source, followee, list, weight)
			}
		}
	} else {
		for followee, weight := range follows {
			q = q.with(source, followee, p.lists[followee], weight)
		}
	}
	heap.Init(&q)
	return q
}

// pulledQueue is a heap of lists. The list with the best head is on top.
type pulledQueue []pulledList

// pulledList is the remaining part of a followee's list, for one user.
type pulledList struct {
	rest   []*schemas.PulledPin // not empty
	weight float32              // of the edge
	score  schemas.PoolScore    // score of the first pin, including the weight
}

func (q pulledQueue) with(source schemas.Source, followee schemas.ID, list []*schemas.PulledPin, weight float32) pulledQueue {
	if len(list) == 0 || schemas.Followee(followee).Source() != source {
		return q
	}
	return append(q, pulledList{list, weight, score.Weighted(list[0].BaseScore, weight)})
}

// take removes the best pin and returns it with its score for the user.
func (q *pulledQueue) take() (*schemas.PulledPin, schemas.PoolScore) {
	top := &(*q)[0]
	e, s := top.rest[0], top.score
	if top.rest = top.rest[1:]; len(top.rest) == 0 {
		heap.Pop(q)
	} else {
		top.score = score.Weighted(top.rest[0].BaseScore, top.weight)
		heap.Fix(q, 0)
	}
	return e, s
}

func (q pulledQueue) Len() int { return len(q) }

func (q pulledQueue) Less(i, j int) bool {
	return comparePlaces(q[i].score, q[i].rest[0].Pin, q[j].score, q[j].rest[0].Pin) < 0
}

func (q pulledQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *pulledQueue) Push(x any) { *q = append(*q, x.(pulledList)) }

// Pop implements heap.Interface.
func (q *pulledQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// comparePlaces sorts the best place first: higher scores first, then lower pins.
func comparePlaces[T ~float64](score T, pin schemas.PinID, other T, otherPin schemas.PinID) int {
	return cmp.Or(cmp.Compare(other, score), cmp.Compare(pin, otherPin))
}

// merged iterates over a user's pushed and pulled candidates, best first, each at its best place.
type merged struct {
	pulled  *Pulled
	pushed  *layout.Iterator
	queue   pulledQueue
	changed map[schemas.PinID]*layout.CandidateRow // highest version of the pushed pins that have later versions
	taken   map[schemas.PinID]bool
}

// merge returns an iterator, and a function that the caller must call after use. Until then, it holds the read lock of p.
func (p *Pulled) merge(l *layout.Iterator, follows map[schemas.ID]float32) (*merged, func()) {
	p.mu.RLock()
	m := &merged{pulled: p, pushed: l, queue: p.queue(l.Source, follows)}
	if len(m.queue) == 0 {
		return m, p.mu.RUnlock // pushed candidates are already distinct pins
	}
	later := l.LaterVersions()
	m.changed = make(map[schemas.PinID]*layout.CandidateRow, len(later))
	for i := range later {
		r := &later[i]
		if top := m.changed[r.Pin]; top == nil || r.Version > top.Version {
			m.changed[r.Pin] = r
		}
	}
	m.taken = map[schemas.PinID]bool{}
	return m, p.mu.RUnlock
}

// next returns the next candidate, or nil at the end.
func (m *merged) next() *layout.Candidate {
	for {
		c := m.pushed.Peek()
		switch {
		case c == nil && len(m.queue) == 0:
			return nil
		case m.first(c):
			c = m.update(m.pushed.Take())
		default:
			c = m.pull()
		}
		if c != nil && m.take(c.Pin) {
			return c
		}
	}
}

// take reports whether the pin occurs for the first time, and records it.
func (m *merged) take(pin schemas.PinID) bool {
	if m.taken == nil {
		return true
	}
	repeated := m.taken[pin]
	m.taken[pin] = true
	return !repeated
}

// first reports whether the pushed candidate c, which may be nil, precedes the pulled ones.
func (m *merged) first(c *layout.Candidate) bool {
	if c == nil || len(m.queue) == 0 {
		return c != nil
	}
	top := &m.queue[0]
	return comparePlaces(top.score, top.rest[0].Pin, c.PoolScore, c.Pin) >= 0
}

// update returns a pushed candidate with the content of the highest known version, or nil if that version invalidates its
// place.
func (m *merged) update(c *layout.Candidate) *layout.Candidate {
	e := m.pulled.newest(c.Pin)
	if e == nil || e.Version <= m.pushed.Version(c) {
		return c
	}
	if e.Created != c.Created {
		return nil
	}
	now := *c
	now.Content = layout.NewContent(e.PinContent)
	return &now
}

// pull takes the best pulled pin. It returns nil if the highest known version invalidates its place.
func (m *merged) pull() *layout.Candidate {
	e, s := m.queue.take()
	newest := m.pulled.newest(e.Pin)
	c := &layout.Candidate{Pin: e.Pin, PoolScore: s, Place: layout.NoPlace, Content: layout.NewContent(newest.PinContent)}
	if r := m.changed[e.Pin]; r != nil && r.Version > newest.Version {
		c.Content = r.Content()
	}
	if e.Created != c.Created {
		return nil
	}
	return c
}
