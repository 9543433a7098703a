package feed

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// product simulates the rest of the pipeline for one user: it offers pins, materializes what was served, and makes its
// store lag. Its data is always correct. Whatever it returns, the pages must join.
type product struct {
	rt    *rapid.T
	store *fakeStore
	feed  []schemas.FeedEntry // materialized, oldest first
	drawn int                 // number of entries whose visibility has been drawn
	lag   int                 // how many of the newest entries the store lacks
	offer int                 // pins offered so far

	// The behavior of the next calls. It is drawn before them, because they run in other goroutines.
	supply, memory         int // new items in a chunk, materialized items that it remembers
	forgetful              bool
	generatorDown, logDown bool
	outcome                schemas.Outcome // of a publication while the log is down
	applied                bool            // whether that publication is in the log nevertheless
}

func (p *product) Chunk(_ context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	if p.generatorDown {
		return nil, errFake
	}
	c := &schemas.Chunk{Head: int64(len(p.feed)), Served: schemas.Served{ID: r.Served, User: r.User}}
	for range min(p.supply, r.Limit) {
		p.offer++
		c.Served.Items = append(c.Served.Items, item(fmt.Sprint("n", p.offer)))
	}
	memory := max(p.lag, p.memory)
	if p.forgetful {
		memory = 0
	}
	for i := len(p.feed) - 1; i >= max(0, len(p.feed)-memory); i-- {
		c.Recent = append(c.Recent, p.feed[i])
	}
	return c, nil
}

func (p *product) Settle(schemas.UserID, string, schemas.Outcome) {}

func (p *product) Waiting(context.Context, schemas.UserID) (int, error) { return 0, nil }

func (p *product) Publish(_ context.Context, s *schemas.Served) (schemas.Outcome, error) {
	if p.logDown {
		if p.applied && p.outcome == schemas.Unknown {
			p.materialize(s)
		}
		return p.outcome, errFake
	}
	p.materialize(s)
	return schemas.Acknowledged, nil
}

// materialize appends the served items to the materialized feed. The store receives it when disturb draws the next lag.
func (p *product) materialize(s *schemas.Served) {
	for _, it := range s.Items {
		p.feed = append(p.feed, schemas.FeedEntry{User: viewer, Position: int64(len(p.feed)) + 1, ServedItem: it})
		p.lag++
	}
}

func (p *product) visible(position int64) bool { return !p.store.cards[p.feed[position-1].Pin].Deleted }

// disturb hides some of the new materialized items, writes all but the newest lag entries to the store, trims, and
// draws the next faults.
func (p *product) disturb() {
	for ; p.drawn < len(p.feed); p.drawn++ {
		if pin := p.feed[p.drawn].Pin; rapid.IntRange(0, 2).Draw(p.rt, "hidden") == 0 {
			p.store.cards[pin] = schemas.Card{PinVersion: schemas.PinVersion{Pin: pin, PinContent: schemas.PinContent{Deleted: true}}}
		}
	}
	p.lag = rapid.IntRange(0, min(p.lag, 8)).Draw(p.rt, "lag")
	for _, e := range p.feed[:len(p.feed)-p.lag] {
		p.store.entries[e.Position] = e
	}
	sometimes := func(what string) bool { return rapid.IntRange(0, 7).Draw(p.rt, what) == 0 }
	if sometimes("trimmed") {
		p.store.trimmed = max(p.store.trimmed, int64(len(p.feed)-15))
	}
	p.generatorDown, p.logDown = sometimes("generator down"), sometimes("log down")
	p.supply, p.memory = rapid.IntRange(0, 6).Draw(p.rt, "new items"), rapid.IntRange(0, 5).Draw(p.rt, "memory")
	p.forgetful = sometimes("forgetful")
	p.outcome = rapid.SampledFrom([]schemas.Outcome{schemas.Failed, schemas.Unknown}).Draw(p.rt, "outcome")
	p.applied = rapid.Bool().Draw(p.rt, "applied")
	p.store.feed.err, p.store.facts.err = nil, nil
	if sometimes("feed rows unavailable") {
		p.store.feed.err = errFake
	}
	if sometimes("facts unavailable") {
		p.store.facts.err = errFake
	}
}

// session is one visit and the pages below it, as a client sees them.
type session struct {
	shown map[schemas.PinID]bool
	met   map[string]int // how often each event occurred in answers, over all sessions
	at    int64          // every visible materialized item from the session's head down to just above it has been shown
	next  *string
}

// TestPagesJoin alternates visits and pages of many sessions while new items arrive, the store lags, dependencies fail, and
// items are trimmed. In every session the materialized items come in descending order without a duplicate and without
// missing a visible item, down to the trim position. No pin is ever new twice.
func TestPagesJoin(t *testing.T) {
	met := map[string]int{}
	lacking := func() (what []string) {
		for _, w := range []string{"generator", "served", "store", "stale", "the end", "nothing visible", "trimmed"} {
			if met[w] == 0 {
				what = append(what, w)
			}
		}
		return what
	}
	const rounds = 20 // with few checks per round, as with the race detector, rare events do not occur in every round
	for round := 0; round == 0 || len(lacking()) > 0 && round < rounds; round++ {
		rapid.Check(t, func(rt *rapid.T) { joinPages(rt, met) })
	}
	expect.Empty(t, lacking(), "states that no answer met: %v", met)
}

// joinPages runs one sequence of visits and pages. met counts the events in answers.
func joinPages(rt *rapid.T, met map[string]int) {
	p := &product{rt: rt, store: newFakeStore()}
	p.store.follow("user:friend", true)
	for range rapid.IntRange(0, 30).Draw(rt, "materialized before") {
		p.offer++
		p.materialize(&schemas.Served{Items: []schemas.ServedItem{item(fmt.Sprint("n", p.offer))}})
	}
	cfg := DefaultConfig()
	cfg.MaxSkippedItems, cfg.CatchUpTimeout = 4, 0
	svc, err := New(cfg, Deps{Generator: p, Store: p.store, Served: p, CursorKey: make([]byte, 16), Metrics: prometheus.NewRegistry()})
	must.OK(rt, err)
	var sessions []*session
	everNew := map[schemas.PinID]bool{}
	for range rapid.IntRange(10, 40).Draw(rt, "steps") {
		p.disturb()
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		if len(sessions) == 0 || rapid.IntRange(0, 2).Draw(rt, "visit") == 0 {
			s := &session{shown: map[schemas.PinID]bool{}, met: met}
			sessions = append(sessions, s)
			head := int64(len(p.feed))
			if p.generatorDown {
				head -= int64(p.lag)
			}
			page := must.Get(svc.Visit(rt.Context(), viewer, "home", limit))(rt)
			s.at = head + 1
			if page.Next != nil && must.Get(svc.cursors.openFeed(*page.Next, viewer))(rt).below > head+1 {
				continue // the head is unknown: the session starts when the store answers
			}
			s.check(rt, p, page, limit, everNew)
			continue
		}
		s := rapid.SampledFrom(sessions).Draw(rt, "session")
		if s.next == nil {
			continue
		}
		page := must.Get(svc.Older(rt.Context(), viewer, *s.next, limit))(rt)
		s.check(rt, p, page, limit, nil)
	}
}

// check verifies the next page of a session.
func (s *session) check(rt *rapid.T, p *product, page Page, limit int, everNew map[schemas.PinID]bool) {
	expect.AtMost(rt, len(page.Items), limit, "items")
	for _, what := range page.Degraded {
		s.met[what]++
	}
	unchecked := slices.Contains(page.Degraded, degradedStore) // the visibility of the items is unknown
	for _, it := range page.Items {
		expect.False(rt, s.shown[it.ID], "%s twice in one session", it.ID)
		s.shown[it.ID] = true
		if it.New {
			if everNew == nil || everNew[it.ID] {
				rt.Fatalf("%s is new again", it.ID)
			}
			everNew[it.ID] = true
			continue
		}
		position := p.positionOf(it.ID)
		s.passed(rt, p, position)
		s.at = position
		if !p.visible(position) && !unchecked {
			rt.Fatalf("%s is hidden", it.ID)
		}
	}
	s.next = page.Next
	if page.Next == nil {
		s.met["the end"]++
		if p.store.trimmed > 0 {
			s.met["trimmed"]++
		}
		s.passed(rt, p, min(p.store.trimmed, s.at-1))
		return
	}
	below, err := cursors{key: make([]byte, 16)}.openFeed(*page.Next, viewer)
	if err != nil || below.below > s.at {
		rt.Fatalf("next is below %d, shown was %d, %v", below.below, s.at, err)
	}
	if len(page.Items) == 0 && len(page.Degraded) == 0 && below.below == s.at {
		rt.Fatalf("an empty page at %d without progress", s.at)
	}
	if len(page.Items) == 0 && len(page.Degraded) == 0 {
		s.met["nothing visible"]++
	}
	s.passed(rt, p, below.below-1)
	s.at = below.below
}

// passed fails if a visible item that was not trimmed lies between the last one shown and position.
func (s *session) passed(rt *rapid.T, p *product, position int64) {
	expect.AtMost(rt, position, s.at-1, "position shown after %d", s.at)
	for between := s.at - 1; between > max(position, p.store.trimmed); between-- {
		expect.False(rt, p.visible(between), "position %d is visible and missing between %d and %d", between, s.at, position)
	}
}

func (p *product) positionOf(pin schemas.PinID) int64 {
	for _, e := range p.feed {
		if e.Pin == pin {
			return e.Position
		}
	}
	p.rt.Fatalf("%s is not materialized", pin)
	return 0
}
