package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

const viewer schemas.UserID = "user:viewer"

// fault injects a fault into the calls to a fake and counts how often it occurred.
type fault struct {
	delay time.Duration   // before the answer; ends at the caller's deadline
	hang  <-chan struct{} // no answer before it is closed, whatever the deadline
	err   error
	then  func() // called before the answer
	hits  atomic.Int64
}

func (f *fault) inject(ctx context.Context) error {
	if f.delay > 0 || f.hang != nil || f.err != nil {
		f.hits.Add(1)
	}
	if f.hang != nil {
		<-f.hang
	}
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.then != nil {
		f.then()
	}
	return f.err
}

var errFake = errors.New("injected fault")

// fakeStore keeps rows in memory.
type fakeStore struct {
	mu           sync.Mutex
	entries      map[int64]schemas.FeedEntry // of the viewer
	trimmed      int64
	cards        map[schemas.PinID]schemas.Card
	edges        map[schemas.ID]map[schemas.EdgeKind]bool
	deletedUsers map[schemas.UserID]bool
	lists        map[schemas.Followee][]schemas.PinVersion // newest first
	feed         fault                                     // of Page
	facts        fault                                     // of Cards, Edges, DeletedUsers
	list         fault
	reads        int
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		entries: map[int64]schemas.FeedEntry{}, cards: map[schemas.PinID]schemas.Card{},
		edges: map[schemas.ID]map[schemas.EdgeKind]bool{}, deletedUsers: map[schemas.UserID]bool{},
		lists: map[schemas.Followee][]schemas.PinVersion{},
	}
}

func (s *fakeStore) follow(other schemas.ID, live bool) { s.edge(other, schemas.FollowEdge, live) }

func (s *fakeStore) edge(other schemas.ID, kind schemas.EdgeKind, live bool) {
	if s.edges[other] == nil {
		s.edges[other] = map[schemas.EdgeKind]bool{}
	}
	s.edges[other][kind] = live
}

func (s *fakeStore) materialize(entries ...schemas.FeedEntry) {
	for _, e := range entries {
		s.entries[e.Position] = e
	}
}

// late calls materialize while answers are computed.
func (s *fakeStore) late(e schemas.FeedEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.materialize(e)
}

func (s *fakeStore) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	s.mu.Lock()
	s.reads++
	err := s.feed.injectLocked(ctx, &s.mu)
	defer s.mu.Unlock()
	var rows []schemas.FeedEntry
	for p, e := range s.entries {
		if p < below && p > s.trimmed && user == viewer {
			rows = append(rows, e)
		}
	}
	slices.SortFunc(rows, func(a, b schemas.FeedEntry) int { return cmp.Compare(b.Position, a.Position) })
	return rows[:min(n, len(rows))], s.trimmed, err
}

// injectLocked is inject for a locked fake. It releases the lock while it waits.
func (f *fault) injectLocked(ctx context.Context, mu *sync.Mutex) error {
	mu.Unlock()
	defer mu.Lock()
	return f.inject(ctx)
}

func (s *fakeStore) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.facts.injectLocked(ctx, &s.mu)
	cards := map[schemas.PinID]schemas.Card{}
	for _, p := range pins {
		if c, ok := s.cards[p]; ok {
			cards[p] = c
		}
	}
	return cards, err
}

func (s *fakeStore) Edges(ctx context.Context, _ schemas.UserID, others []schemas.ID) (edges []schemas.Edge, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range others {
		for kind, live := range s.edges[o] {
			edges = append(edges, schemas.Edge{User: viewer, Other: o, Kind: kind, Live: live})
		}
	}
	return edges, nil
}

func (s *fakeStore) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deletedUsers := map[schemas.UserID]bool{}
	for _, u := range users {
		if s.deletedUsers[u] {
			deletedUsers[u] = true
		}
	}
	return deletedUsers, nil
}

// List uses the pin before a place as the name of the place.
func (s *fakeStore) List(ctx context.Context, f schemas.Followee, from string, n int) ([]schemas.PinVersion, string, error) {
	if err := s.list.inject(ctx); err != nil {
		return nil, "", err
	}
	rest := s.lists[f]
	if i := slices.IndexFunc(rest, func(p schemas.PinVersion) bool { return string(p.Pin) == from }); i >= 0 {
		rest = rest[i+1:]
	}
	if len(rest) <= n {
		return rest, "", nil
	}
	return rest[:n], string(rest[n-1].Pin), nil
}

// settled is one call of Settle.
type settled struct {
	ID      string
	Outcome schemas.Outcome
}

// fakeGenerator returns a fixed chunk.
type fakeGenerator struct {
	mu      sync.Mutex
	chunk   schemas.Chunk
	fault   fault
	settled []settled
	asked   []schemas.ChunkRequest
}

func (g *fakeGenerator) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	g.mu.Lock()
	g.asked = append(g.asked, r)
	g.mu.Unlock()
	if err := g.fault.inject(ctx); err != nil {
		return nil, err
	}
	c := g.chunk
	c.Served.ID, c.Served.User, c.Served.Time, c.Served.Feed = r.Served, r.User, r.Time, r.Feed
	return &c, nil
}

func (g *fakeGenerator) Settle(_ schemas.UserID, served string, o schemas.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled = append(g.settled, settled{served, o})
}

func (g *fakeGenerator) Waiting(ctx context.Context, _ schemas.UserID) (int, error) {
	return 7, g.fault.inject(ctx)
}

// fakeLog records what was published.
type fakeLog struct {
	mu        sync.Mutex
	fault     fault
	outcome   schemas.Outcome // with fault.err
	published []schemas.Served
}

func (l *fakeLog) Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error) {
	if err := l.fault.inject(ctx); err != nil {
		if ctx.Err() != nil {
			return schemas.Unknown, err
		}
		return l.outcome, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published = append(l.published, *s)
	return schemas.Acknowledged, nil
}

// rig is a service with fake dependencies.
type rig struct {
	*Service
	gen   *fakeGenerator
	store *fakeStore
	log   *fakeLog
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	r := &rig{gen: &fakeGenerator{}, store: newFakeStore(), log: &fakeLog{}}
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	var ids int
	r.Service = must.Get(New(cfg, Deps{
		Generator: r.gen, Store: r.store, Served: r.log, CursorKey: []byte("0123456789abcdef"),
		NewID:   func() string { ids++; return fmt.Sprint("served-", ids) },
		Metrics: prometheus.NewRegistry(),
	}))(t)
	return r
}

// item returns an item of the pin with this name, by an author whom the viewer follows in most tests.
func item(name string) schemas.ServedItem {
	return schemas.ServedItem{Pin: schemas.PinID("pin:" + name), Source: schemas.Following,
		Facets: schemas.Facets{Author: "user:friend"}, RankScore: 1, Created: 1e6}
}

// entry returns a materialized item whose pin is named after its position.
func entry(position int64) schemas.FeedEntry {
	return schemas.FeedEntry{User: viewer, Position: position, ServedItem: item(fmt.Sprintf("f%d", position))}
}

func entriesDown(from, to int64) (down []schemas.FeedEntry) {
	for p := from; p >= to; p-- {
		down = append(down, entry(p))
	}
	return down
}

// names returns the pins of a page in a short form, new ones with a star.
func names(items []Item) string {
	var all []string
	for _, it := range items {
		name := strings.TrimPrefix(string(it.ID), "pin:")
		if it.New {
			name = "*" + name
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// below returns the position in a page's cursor, or -1 if there is none.
func (r *rig) below(t testing.TB, next *string) int64 {
	t.Helper()
	if next == nil {
		return -1
	}
	at := must.Get(r.cursors.openFeed(*next, viewer))(t)
	return at.below
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	expect.NoDiff(t, got, want, "%s", what)
}
