package generator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// visitTime is how long a feed service waits for a chunk by default.
const visitTime = 150 * time.Millisecond

// sluggard is a dependency that hangs until it is released.
type sluggard struct {
	hits atomic.Int64
	well atomic.Bool // it answers
}

// dial connects to a server that never answers.
func (s *sluggard) dial(t *testing.T) outside.Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		s.hits.Add(1)
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	}
}

func (s *sluggard) hang(ctx context.Context) error {
	s.hits.Add(1)
	if s.well.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *sluggard) offer(ctx context.Context, _ schemas.UserID, _ string, _ int) ([]schemas.Candidate, error) {
	return nil, s.hang(ctx)
}

func (s *sluggard) score(ctx context.Context, _ schemas.UserID, _ string, _ []Scored) (map[schemas.PinID]float64, error) {
	return nil, s.hang(ctx)
}

// deaf is a source that ignores its context, takes its time, and answers.
func (s *sluggard) deaf(context.Context, schemas.UserID, string, int) ([]schemas.Candidate, error) {
	s.hits.Add(1)
	time.Sleep(visitTime - time.Millisecond)
	return nil, nil
}

// hangs returns the ways in which a dependency can hang, and the degraded reason of each.
func hangs() map[string]struct {
	degraded string
	place    func(s *sluggard, cfg *Config, own *Extensions)
} {
	patient := outside.Config{URL: "http://slow.example/", Timeout: 5 * time.Second}
	return map[string]struct {
		degraded string
		place    func(s *sluggard, cfg *Config, own *Extensions)
	}{
		"a source": {"source:slow", func(_ *sluggard, cfg *Config, _ *Extensions) {
			cfg.Sources = []ExternalSource{source("slow", patient)}
		}},
		"a model": {degradedModel, func(_ *sluggard, cfg *Config, _ *Extensions) {
			cfg.Model = ExternalModel{Config: patient, Candidates: 10}
		}},
		"an own source": {"source:slow", func(s *sluggard, _ *Config, own *Extensions) {
			own.Sources = []ExtensionSource{{Name: "slow", Limit: 9, Share: 1, Offer: s.offer}}
		}},
		"an own source that does not heed its context": {"source:slow", func(s *sluggard, _ *Config, own *Extensions) {
			own.Sources = []ExtensionSource{{Name: "slow", Limit: 9, Share: 1, Offer: s.deaf}}
		}},
		"an own score": {degradedModel, func(s *sluggard, _ *Config, own *Extensions) { own.Score = s.score }},
	}
}

// visitWithin makes a chunk of the feed home for a visit with the given timeout, and returns how long that took.
func visitWithin(t *testing.T, g *Generator, wait time.Duration, change func(*schemas.ChunkRequest)) (*schemas.Chunk, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	r := request("v1")
	r.Feed, r.Time = rules.Home, 1e15
	if change != nil {
		change(&r)
	}
	began := time.Now()
	c, err := g.Chunk(ctx, r)
	must.OK(t, err)
	g.Settle(poolstest.Owner, r.Served, schemas.Failed)
	return c, time.Since(began)
}

// A visit continues without a dependency that hangs while there is time left, whatever the timeout of that dependency. After
// a number of timeouts the circuit breaker opens, and visits do not wait for it at all until the pause has passed.
func TestWhatHangsDoesNotTakeTheVisit(t *testing.T) {
	for name, hanging := range hangs() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slow sluggard
				cfg, own, reg, d := withoutLots(), Extensions{}, prometheus.NewRegistry(), newDesk(2)
				hanging.place(&slow, &cfg, &own)
				g := generatorWith(t, cfg, Deps{
					Rows: d, Dial: slow.dial(t), Extensions: own, Metrics: reg,
				})
				for n := range outside.Failures + 1 {
					c, took := visitWithin(t, g, visitTime, nil)
					if !slices.Contains(c.Degraded, hanging.degraded) || len(c.Served.Items) != 2 {
						t.Errorf("visit %d: degraded %v, items %v", n, c.Degraded, pinsOf(c.Served.Items))
					}
					if open := n == outside.Failures; open != (took == 0) {
						t.Errorf("visit %d took %s", n, took)
					}
				}
				if n := slow.hits.Load(); n != outside.Failures {
					t.Errorf("asked %d times, want %d", n, outside.Failures)
				}
				label := map[bool]string{true: "model", false: "slow"}[hanging.degraded == degradedModel]
				want := map[string]float64{"timeout " + label: outside.Failures, "circuit_open " + label: 1}
				if diff := cmp.Diff(want, counted(t, reg, "smartfeed_generator_external_calls_total")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				time.Sleep(outside.OpenFor + 1)
				visitWithin(t, g, visitTime, nil)
				if n := slow.hits.Load(); n != outside.Failures+1 {
					t.Errorf("asked %d times after that, want %d", n, outside.Failures+1)
				}
			})
		})
	}
}

// An own function that recovers is called again.
func TestWhatHungIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow sluggard
		d := newDesk(2)
		g := generatorWith(t, withoutLots(), Deps{Rows: d, Extensions: Extensions{Score: slow.score}})
		for range outside.Failures {
			visitWithin(t, g, visitTime, nil)
		}
		slow.well.Store(true)
		time.Sleep(outside.OpenFor + 1)
		for n := range 3 {
			if c, _ := visitWithin(t, g, visitTime, nil); slices.Contains(c.Degraded, degradedModel) {
				t.Errorf("visit %d: degraded %v", n, c.Degraded)
			}
		}
		if n := slow.hits.Load(); n != outside.Failures+3 {
			t.Errorf("asked %d times, want %d", n, outside.Failures+3)
		}
	})
}

// Even if all dependencies hang and the backfills of a reactivated user are missing, there is time to make a chunk of the
// waiting candidates.
func TestWhateverHangsAChunkIsMadeOfWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow sluggard
		d, cfg := newDesk(2), withoutLots()
		d.rows[string(layout.KindActivity)] = packed.Encode(&layout.Activity{LastSeen: 1e15, BackfillID: 1e15, Expected: 3})
		for n := range 3 {
			cfg.Sources = append(cfg.Sources, source(schemas.Source(fmt.Sprint("slow", n)),
				outside.Config{URL: "http://slow.example/", Timeout: 5 * time.Second}))
		}
		g := generatorWith(t, cfg, Deps{
			Rows: d, Dial: slow.dial(t), Extensions: Extensions{Score: slow.score},
		})
		c, _ := visitWithin(t, g, visitTime, func(r *schemas.ChunkRequest) { r.Announced = true })
		want := []string{"source:slow0", "source:slow1", "source:slow2", degradedReactivating, degradedModel}
		if diff := cmp.Diff(want, c.Degraded); diff != "" || len(c.Served.Items) != 2 {
			t.Errorf("items %v; degraded (-want +got):\n%s", pinsOf(c.Served.Items), diff)
		}
		if n := slow.hits.Load(); n != 4 {
			t.Errorf("asked %d, want three sources and the score", n)
		}
	})
}
