package hedged

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/topics"
)

// lagOf maps a store to the topics in which it lags, for every key.
type lagOf map[string]string

func (l lagOf) Lags(store, topic string, _ ...string) bool {
	return strings.Contains(l[store], topic)
}

const everything = topics.Edges + topics.PinCards + topics.UsersDeleted + topics.Publications

func newLaggingStore(t *testing.T, cfg Config, a, b feed.Store, lag lagOf) *Store {
	t.Helper()
	s := must.Get(New(cfg, Stores{Primary: a, Standby: b, Lag: lag}, prometheus.NewRegistry()))(t)
	t.Cleanup(s.Close)
	return s
}

func TestRead_LaggingStoreIsNoSuccess(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  *fake
		lag   lagOf
		took  time.Duration
		err   error
		known bool // there is an answer
		calls [2]int64
	}{
		{name: "the standby lags", a: newFake(10 * ms), b: newFake(0), lag: lagOf{"standby": everything},
			took: 10 * ms, known: true, calls: [2]int64{1, 0}},
		{name: "the standby lags, the primary is slow", a: newFake(90 * ms), b: newFake(0), lag: lagOf{"standby": everything},
			took: 90 * ms, known: true, calls: [2]int64{1, 1}},
		{name: "the standby lags, the primary fails", a: down(), b: newFake(10 * ms), lag: lagOf{"standby": everything},
			took: 10 * ms, known: true, err: feed.ErrStale, calls: [2]int64{1, 1}},
		{name: "the standby lags, the primary hangs", a: hung(), b: newFake(10 * ms), lag: lagOf{"standby": everything},
			took: 130 * ms, known: true, err: feed.ErrStale, calls: [2]int64{1, 1}},
		{name: "the primary lags", a: newFake(0), b: newFake(10 * ms), lag: lagOf{"primary": everything},
			took: 10 * ms, known: true, calls: [2]int64{0, 1}},
		{name: "the primary lags, the standby fails", a: newFake(10 * ms), b: down(), lag: lagOf{"primary": everything},
			took: 10 * ms, known: true, err: feed.ErrStale, calls: [2]int64{1, 1}},
		{name: "both lag", a: newFake(10 * ms), b: newFake(0), lag: lagOf{"primary": everything, "standby": everything},
			took: 10 * ms, known: true, err: feed.ErrStale, calls: [2]int64{1, 0}},
		{name: "the standby lags, both fail", a: down(), b: down(), lag: lagOf{"standby": everything}, err: errDown, calls: [2]int64{1, 1}},
		{name: "another topic lags", a: down(), b: newFake(10 * ms), lag: lagOf{"standby": "another"},
			took: 10 * ms, known: true, calls: [2]int64{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLaggingStore(t, cold(), c.a, c.b, c.lag)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				edges, err := s.Edges(ctx, "user:1", []schemas.ID{"user:2"})
				if took := time.Since(began); took != c.took || !errors.Is(err, c.err) || (len(edges) > 0) != c.known {
					t.Errorf("got %v, %v after %s, want edges %t, %v after %s", edges, err, took, c.known, c.err, c.took)
				}
				s.Close()
				check(t, "calls", [2]int64{c.a.calls.Load(), c.b.calls.Load()}, c.calls, nil)
			})
		})
	}
}

func TestRead_EveryKindHasItsTopic(t *testing.T) {
	ctx := t.Context()
	for topic, read := range map[string]func(*Store) error{
		topics.Edges:        func(s *Store) error { _, err := s.Edges(ctx, "user:1", []schemas.ID{"user:2"}); return err },
		topics.PinCards:     func(s *Store) error { _, err := s.Cards(ctx, []schemas.PinID{"pin:1"}); return err },
		topics.UsersDeleted: func(s *Store) error { _, err := s.DeletedUsers(ctx, []schemas.UserID{"user:1"}); return err },
		topics.Publications: func(s *Store) error { _, _, err := s.List(ctx, "user:1", "", 1); return err },
	} {
		s := newLaggingStore(t, cold(), down(), newFake(0), lagOf{"standby": topic})
		expect.Is(t, read(s), feed.ErrStale, "%s", topic)
	}
	s := newLaggingStore(t, cold(), down(), newFake(0), lagOf{"standby": everything})
	if entries, _, err := s.Page(ctx, "user:1", 3, 10); len(entries) != 2 || err != nil {
		t.Errorf("page: got %v, %v, want 2 entries: a hole would show", entries, err)
	}
}

// pools is the generator of one user. It remembers the newest two entries, and that the second must not be shown.
type pools struct{ feed.Generator }

func (pools) Chunk(_ context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	following := schemas.ServedItem{Pin: "pin:new", Source: schemas.Following, Facets: schemas.Facets{Author: "user:friend"}}
	related := following
	related.Pin, related.Source = "pin:related", schemas.Related
	return &schemas.Chunk{
		Served: schemas.Served{ID: r.Served, User: r.User, Items: []schemas.ServedItem{following, related}}, Head: 4,
		Recent: []schemas.FeedEntry{materialized(4, "user:friend"), {User: "user:1", Position: 3}},
	}, nil
}

func (pools) Settle(schemas.UserID, string, schemas.Outcome) {}

func (pools) Neighbors(context.Context, schemas.ID, int) ([]schemas.RelatedItem, error) {
	return []schemas.RelatedItem{{ID: "pin:4", Facets: schemas.Facets{Author: "user:friend"}}}, nil
}

func (pools) Publish(context.Context, *schemas.Served) (schemas.Outcome, error) {
	return schemas.Acknowledged, nil
}

func materialized(position int64, author schemas.UserID) schemas.FeedEntry {
	pin := schemas.PinID(fmt.Sprint("pin:", position))
	return schemas.FeedEntry{User: "user:1", Position: position, ServedItem: schemas.ServedItem{
		Pin: pin, Source: schemas.Following, Facets: schemas.Facets{Author: author, Board: "board:1"}}}
}

// bothStores returns two stores on disk with four entries, by an author whom the user follows and by one who is hidden
// later.
func bothStores(t *testing.T) (both [2]*feedstore.Store) {
	before := feedstore.Batch{}
	for position, author := range []schemas.UserID{"user:friend", "user:foe", "user:foe", "user:friend"} {
		e := materialized(int64(position)+1, author)
		p := schemas.PinVersion{Pin: e.Pin, Version: 1, PinContent: schemas.PinContent{Created: schemas.Micros(position), Facets: e.Facets}}
		before.Entries = append(before.Entries, e)
		before.Cards = append(before.Cards, schemas.Card{PinVersion: p})
		before.Publications = append(before.Publications, schemas.Publication{Followee: "board:1", PinVersion: p})
	}
	for _, author := range []schemas.ID{"user:friend", "user:foe"} {
		before.Edges = append(before.Edges, schemas.Edge{User: "user:1", Other: author, Kind: schemas.FollowEdge, Live: true, Time: 1})
	}
	for i := range both {
		s, err := feedstore.Open(t.TempDir(), feedstore.DefaultConfig(), slog.New(slog.DiscardHandler))
		if err == nil {
			err = s.Write(t.Context(), before)
		}
		must.OK(t, err)
		t.Cleanup(func() { _ = s.Close() })
		both[i] = s
	}
	return both
}

func shown[T any](items []T, id func(T) schemas.PinID) string {
	return strings.Join(convert.All(items, func(it T) string { return strings.TrimPrefix(string(id(it)), "pin:") }), " ")
}

// The standby lags behind the primary, then the primary fails. Hidden items must not reappear.
func TestAnswers_LaggingStandbyRevealsNothingHidden(t *testing.T) {
	foe := func(kind schemas.EdgeKind, live bool) feedstore.Batch {
		return feedstore.Batch{Edges: []schemas.Edge{{User: "user:1", Other: "user:foe", Kind: kind, Live: live, Time: 2}}}
	}
	deleted := func(pin schemas.PinID) schemas.Card {
		return schemas.Card{PinVersion: schemas.PinVersion{Pin: pin, Version: 2, PinContent: schemas.PinContent{Deleted: true}}}
	}
	for name, change := range map[string]feedstore.Batch{
		"block":         foe(schemas.BlockEdge, true),
		"blocked":       foe(schemas.BlockedEdge, true),
		"unfollow":      foe(schemas.FollowEdge, false),
		"pins deleted":  {Cards: []schemas.Card{deleted("pin:2"), deleted("pin:3")}},
		"author erased": {Deleted: []schemas.DeletedUser{{User: "user:foe", Time: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			stores, lag := bothStores(t), lagOf{}
			primary, outage := &struct{ feed.Store }{stores[0]}, down()
			cfg := feed.DefaultConfig()
			cfg.GeneratorTimeout, cfg.ReadTimeout, cfg.CatchUpTimeout = time.Minute, time.Minute, 0 // the test must not fail on a busy machine
			svc := must.Get(feed.New(cfg, feed.Deps{
				Generator: pools{}, Neighbors: pools{}, Served: pools{}, CursorKey: make([]byte, 16), Metrics: prometheus.NewRegistry(),
				Store: newLaggingStore(t, cold(), primary, stores[1], lag),
			}))(t)
			ctx := t.Context()
			first, err := svc.Visit(ctx, "user:1", "home", 3)
			check(t, "before, visit", shown(first.Items, func(i feed.Item) schemas.PinID { return i.ID }), "new related 4", err)
			must.OK(t, stores[0].Write(ctx, change))
			lag["standby"], primary.Store = everything, outage

			page, err := svc.Visit(ctx, "user:1", "home", 10)
			check(t, "visit", shown(page.Items, func(i feed.Item) schemas.PinID { return i.ID }), "new 4", err)
			check(t, "visit, degraded", page.Degraded, []string{"stale"}, nil)
			older, err := svc.Older(ctx, "user:1", *first.Next, 10)
			check(t, "older", len(older.Items), 0, err)
			check(t, "older, degraded", older.Degraded, []string{"stale"}, nil)
			list, err := svc.List(ctx, "board:1", "", "", 10)
			check(t, "list", len(list.Items), 0, err)
			check(t, "list, degraded", list.Degraded, []string{"stale"}, nil)
			related, err := svc.RelatedPins(ctx, "pin:1", "", 10)
			check(t, "related", len(related.Items), 0, err)
			check(t, "related, degraded", related.Degraded, []string{"stale"}, nil)

			lag["standby"] = ""
			must.OK(t, stores[1].Write(ctx, change))
			rest, err := svc.Older(ctx, "user:1", *older.Next, 10)
			check(t, "older, when the standby has it", shown(rest.Items, func(i feed.Item) schemas.PinID { return i.ID }), "1", err)
			whole, err := svc.Visit(ctx, "user:1", "home", 10)
			check(t, "visit, when the standby has it", shown(whole.Items, func(i feed.Item) schemas.PinID { return i.ID }), "new related 4 1", err)
			list, err = svc.List(ctx, "board:1", "", *list.Next, 10)
			if err != nil || len(list.Items) == 0 || len(list.Degraded) > 0 {
				t.Errorf("list, when the standby has it: got %+v, %v", list, err)
			}
			expect.AtLeast(t, outage.calls.Load(), 1, "failures of the primary")
		})
	}
}
