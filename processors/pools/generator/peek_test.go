package generator

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// peek peeks 40 days after the epoch. It waits for at most 100 ms.
func peek(t *testing.T, g *Generator, feed string) (*schemas.Chunk, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	at := schemas.MicrosOf(time.Unix(0, 0).AddDate(0, 0, 40))
	return g.Chunk(ctx, schemas.ChunkRequest{Peek: true, User: poolstest.Owner, Feed: feed, Limit: 3, Time: at})
}

// Peeks and the visit after them have the same items, also if these are drawn. Before and after the visit is applied, a peek
// has the items of the next visit.
func TestPeek_HasItemsOfNextVisit(t *testing.T) { synctest.Test(t, testPeekHasItemsOfNextVisit) }

func testPeekHasItemsOfNextVisit(t *testing.T) {
	d := newFakePools(40)
	reg := prometheus.NewRegistry()
	cfg := DefaultConfig() // the chunks depend on the draws of the next visit
	changeHome(cfg.Feeds, func(home *rules.Feed) { home.Shares[schemas.Explore] = 1 })
	g := generatorWith(t, cfg, Deps{Rows: d, Hot: NewHot(nil), Metrics: reg})
	var shown [][]schemas.PinID
	for _, id := range []string{"v1", "v2"} {
		first := must.Get(peek(t, g, rules.Home))(t)
		second := must.Get(peek(t, g, rules.Home))(t)
		visit := homeVisit(t, g, id, 3)
		for name, got := range map[string]*schemas.Chunk{"first peek": first, "second peek": second} {
			if diff := cmp.Diff(visit.Served.Items, got.Served.Items); diff != "" || got.Head != visit.Head || got.Served.ID != "" {
				t.Errorf("%s of %s (-visit +peek):\n%s", name, id, diff)
			}
		}
		d.apply(t, &visit.Served)
		shown = append(shown, pinsOf(visit.Served.Items))
	}
	if len(shown[0]) != 3 || slices.ContainsFunc(shown[1], func(p schemas.PinID) bool { return slices.Contains(shown[0], p) }) {
		t.Errorf("got %v, want two visits without a common pin", shown)
	}
	expect.Equal(t, metricstest.Sum(t, reg, "smartfeed_generator_items_total"), 6, "counted items: those of the two visits")
}

// The outcome of a visit in flight determines what the next visit shows, so a peek waits for it. A visit does not wait for
// a peek.
func TestPeek_WaitsForVisitInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		g := generatorOf(t, d)
		first := visit(t, g, "v1")
		expect.Is(t, expect.ErrorOf(peek(t, g, "plain")), context.DeadlineExceeded, "in flight")
		g.Settle(poolstest.Owner, "v1", schemas.Acknowledged)
		d.apply(t, &first.Served)
		expectPins(t, must.Get(peek(t, g, "plain"))(t).Served.Items, "pin:2", "pin:3", "pin:4")
		expectPins(t, visit(t, g, "v2").Served.Items, "pin:2", "pin:3")
	})
}

func TestChunk_RejectsPeekWithID(t *testing.T) {
	g := generatorOf(t, newFakePools(1))
	for _, req := range []schemas.ChunkRequest{{Peek: true, Served: "v1"}, {}} {
		req.User, req.Feed, req.Limit = poolstest.Owner, "plain", 1
		expect.Fails(t, expect.ErrorOf(g.Chunk(t.Context(), req)), "%+v", req)
	}
}

// A peek does not announce a visit, so no backfill would arrive.
func TestPeek_DoesNotReactivateUser(t *testing.T) {
	for name, inactive := range map[string]bool{"inactive": true, "active, without a recent visit": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakePools(2)
				a := layout.Activity{Inactive: inactive}
				d.rows[string(layout.KindActivity)] = packed.Encode(&a)
				g := generatorOf(t, d)
				start := time.Now()
				c := must.Get(peek(t, g, "plain"))(t)
				if c.Inactive || c.Announce || slices.Contains(c.Degraded, degradedReactivating) != inactive || time.Since(start) > 0 {
					t.Errorf("got %+v after %s, want no announcement and no wait", c, time.Since(start))
				}
				expectPins(t, c.Served.Items, "pin:0", "pin:1")
			})
		})
	}
}

// A repeated visit shows the next pins only if its first attempt has shown none.
func TestChunk_RepeatedVisitTakesNoFurtherPins(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakePools(5)
				g := generatorOf(t, d)
				attempt := func(id string) *schemas.Chunk {
					req := request("key." + id)
					req.Attempts = "key."
					return must.Get(g.Chunk(t.Context(), req))(t)
				}
				first := attempt("1")
				if applied {
					g.Settle(poolstest.Owner, "key.1", schemas.Acknowledged)
					d.apply(t, &first.Served)
				} else {
					g.Settle(poolstest.Owner, "key.1", schemas.Failed)
				}
				second := attempt("2")
				if applied {
					if len(second.Served.Items) > 0 || second.Head != 2 || second.ReadRecent == nil || second.Announce {
						t.Errorf("got %+v, want the materialized entries up to 2", second)
					}
				} else {
					expectPins(t, second.Served.Items, "pin:0", "pin:1")
					g.Settle(poolstest.Owner, "key.2", schemas.Failed)
				}
				expectPins(t, visit(t, g, "other").Served.Items, map[bool][]schemas.PinID{true: {"pin:2", "pin:3"}, false: {"pin:0", "pin:1"}}[applied]...)
			})
		})
	}
}
