package feed_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

const viewer schemas.UserID = "user:viewer"

// generator returns chunks of fixed items and remembers nothing.
type generator struct{ chunk schemas.Chunk }

func (g *generator) Chunk(context.Context, schemas.ChunkRequest) (*schemas.Chunk, error) {
	return &g.chunk, nil
}

func (g *generator) Settle(schemas.UserID, string, schemas.Outcome) {}

func (g *generator) Waiting(context.Context, schemas.UserID) (int, error) { return 0, nil }

type acknowledging struct{}

func (acknowledging) Publish(context.Context, *schemas.Served) (schemas.Outcome, error) {
	return schemas.Acknowledged, nil
}

// newService returns a service on the embedded store, which has a materialized feed of n items by 50 authors whom the
// viewer follows.
func newService(t testing.TB, n int) (*feed.Service, *feedstore.Store, *generator) {
	t.Helper()
	store := must.Get(feedstore.Open(t.TempDir(), feedstore.DefaultConfig(), slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { must.OK(t, store.Close()) })
	must.OK(t, store.Write(t.Context(), materialized(n)))
	gen := &generator{schemas.Chunk{Head: int64(n)}}
	cfg := feed.DefaultConfig()
	cfg.ReadTimeout, cfg.GeneratorTimeout = time.Minute, time.Minute // the test must not fail on a busy machine
	svc := must.Get(feed.New(cfg, feed.Deps{
		Generator: gen, Store: store, Served: acknowledging{}, CursorKey: make([]byte, 16), Metrics: prometheus.NewRegistry(),
	}))(t)
	return svc, store, gen
}

func materialized(n int) (b feedstore.Batch) {
	for i := 1; i <= n; i++ {
		author := schemas.UserID(fmt.Sprintf("user:author-%d", i%50))
		facets := schemas.Facets{Author: author, Board: schemas.BoardID(fmt.Sprintf("board:%d", i%200)),
			Interests: []schemas.InterestID{"interest:a", "interest:b"}}
		pin := schemas.PinID(fmt.Sprintf("pin:%d", i))
		b.Entries = append(b.Entries, schemas.FeedEntry{User: viewer, Position: int64(i),
			ServedItem: schemas.ServedItem{Pin: pin, Source: schemas.Following, Facets: facets}})
		b.Cards = append(b.Cards, schemas.Card{Title: "A title of some length", Link: "https://example.com/page",
			PinVersion: schemas.PinVersion{Pin: pin, Version: 1, PinContent: schemas.PinContent{Facets: facets}}})
		b.Edges = append(b.Edges, schemas.Edge{User: viewer, Other: schemas.ID(author), Kind: schemas.FollowEdge, Live: true, Time: 1})
	}
	return b
}

// TestVisit_AppliesStoredFactsImmediately writes rows as materialize does and checks the next answer.
func TestVisit_AppliesStoredFactsImmediately(t *testing.T) {
	svc, store, _ := newService(t, 100)
	newest := func() schemas.PinID {
		t.Helper()
		page := must.Get(svc.Visit(t.Context(), viewer, "home", 1))(t)
		if len(page.Items) != 1 || len(page.Degraded) > 0 {
			t.Fatalf("got %+v", page)
		}
		return page.Items[0].ID
	}
	edge := func(other schemas.ID, kind schemas.EdgeKind, live bool, time schemas.Micros) feedstore.Batch {
		return feedstore.Batch{Edges: []schemas.Edge{{User: viewer, Other: other, Kind: kind, Live: live, Time: time}}}
	}
	for _, c := range []struct {
		name  string
		write feedstore.Batch
		want  schemas.PinID
	}{
		{"initially", feedstore.Batch{}, "pin:100"},
		{"pin deleted", feedstore.Batch{Cards: []schemas.Card{
			{PinVersion: schemas.PinVersion{Pin: "pin:100", Version: 2, PinContent: schemas.PinContent{Deleted: true}}}}}, "pin:99"},
		{"unfollowed", edge("user:author-49", schemas.FollowEdge, false, 2), "pin:98"},
		{"blocked", edge("user:author-48", schemas.BlockEdge, true, 3), "pin:97"},
		{"blocked by", edge("user:author-47", schemas.BlockedEdge, true, 3), "pin:96"},
		{"board blocked", edge("board:96", schemas.BlockEdge, true, 3), "pin:95"},
		{"author deleted", feedstore.Batch{Deleted: []schemas.DeletedUser{{User: "user:author-45", Time: 1}}}, "pin:94"},
		{"unblocked", edge("user:author-48", schemas.BlockEdge, false, 4), "pin:98"},
		{"followed again, by an older event", edge("user:author-49", schemas.FollowEdge, true, 1), "pin:98"},
		{"followed again", edge("user:author-49", schemas.FollowEdge, true, 5), "pin:99"},
	} {
		must.OK(t, store.Write(t.Context(), c.write))
		expect.Equal(t, newest(), c.want, "%s: newest", c.name)
	}
}
