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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// visitTime is the default time that a feed service waits for a chunk.
const visitTime = 150 * time.Millisecond

// hangingService is a dependency that hangs until it is released.
type hangingService struct {
	hits      atomic.Int64
	recovered atomic.Bool // it no longer hangs
}

// dial connects to a server that never responds.
func (s *hangingService) dial(t *testing.T) external.Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		s.hits.Add(1)
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	}
}

func (s *hangingService) hang(ctx context.Context) error {
	s.hits.Add(1)
	if s.recovered.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *hangingService) offer(ctx context.Context, _ schemas.UserID, _ string, _ int) ([]schemas.Candidate, error) {
	return nil, s.hang(ctx)
}

func (s *hangingService) score(ctx context.Context, _ schemas.UserID, _ string, _ []Scored) (map[schemas.PinID]float64, error) {
	return nil, s.hang(ctx)
}

// ignoring is a source that ignores its context and returns late.
func (s *hangingService) ignoring(context.Context, schemas.UserID, string, int) ([]schemas.Candidate, error) {
	s.hits.Add(1)
	time.Sleep(visitTime - time.Millisecond)
	return nil, nil
}

// hangs returns the ways in which a dependency can hang, and the degraded reason of each.
func hangs() map[string]struct {
	degraded string
	place    func(s *hangingService, cfg *Config, extensions *Extensions)
} {
	patient := external.Config{URL: "http://slow.example/", Timeout: 5 * time.Second}
	return map[string]struct {
		degraded string
		place    func(s *hangingService, cfg *Config, extensions *Extensions)
	}{
		"a source": {"source:slow", func(_ *hangingService, cfg *Config, _ *Extensions) {
			cfg.ExternalSources = []ExternalSource{source("slow", patient)}
		}},
		"a model": {degradedModel, func(_ *hangingService, cfg *Config, _ *Extensions) {
			cfg.Model.Config, cfg.Model.MaxCandidates = patient, 10
		}},
		"an extension source": {"source:slow", func(s *hangingService, _ *Config, extensions *Extensions) {
			extensions.Sources = []ExtensionSource{{Name: "slow", Limit: 9, Share: 1, Offer: s.offer}}
		}},
		"an extension source that ignores its context": {"source:slow", func(s *hangingService, _ *Config, extensions *Extensions) {
			extensions.Sources = []ExtensionSource{{Name: "slow", Limit: 9, Share: 1, Offer: s.ignoring}}
		}},
		"an extension score": {degradedModel, func(s *hangingService, _ *Config, extensions *Extensions) { extensions.Score = s.score }},
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
	c := must.Get(g.Chunk(ctx, r))(t)
	g.Settle(poolstest.Owner, r.Served, schemas.Failed)
	return c, time.Since(began)
}

// A visit continues in time without a dependency that hangs, regardless of the timeout of that dependency. After a
// number of timeouts, the circuit breaker opens, and visits do not wait for the dependency until the breaker is
// half-open.
func TestExternal_HangingServiceDoesNotDelayVisit(t *testing.T) {
	for name, hanging := range hangs() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slow hangingService
				cfg, extensions, reg, d := withoutExploration(), Extensions{}, prometheus.NewRegistry(), newFakePools(2)
				hanging.place(&slow, &cfg, &extensions)
				g := generatorWith(t, cfg, Deps{
					Rows: d, Dial: slow.dial(t), Extensions: extensions, Metrics: reg,
				})
				for n := range external.Failures + 1 {
					c, took := visitWithin(t, g, visitTime, nil)
					if !slices.Contains(c.Degraded, hanging.degraded) || len(c.Served.Items) != 2 {
						t.Errorf("visit %d: degraded %v, items %v", n, c.Degraded, pinsOf(c.Served.Items))
					}
					expect.Equal(t, n == external.Failures, took == 0, "visit %d takes no time; it took %s", n, took)
				}
				expect.Equal(t, slow.hits.Load(), external.Failures, "calls")
				label := map[bool]string{true: "model", false: "slow"}[hanging.degraded == degradedModel]
				want := map[string]float64{"timeout " + label: external.Failures, "circuit_open " + label: 1}
				expect.NoDiff(t, metricstest.Values(t, reg, "smartfeed_generator_external_calls_total"), want, "calls")
				time.Sleep(external.OpenFor + 1)
				visitWithin(t, g, visitTime, nil)
				expect.Equal(t, slow.hits.Load(), external.Failures+1, "calls after the pause")
			})
		})
	}
}

// An extension that recovers is called again.
func TestExtension_CalledAgainAfterRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow hangingService
		d := newFakePools(2)
		g := generatorWith(t, withoutExploration(), Deps{Rows: d, Extensions: Extensions{Score: slow.score}})
		for range external.Failures {
			visitWithin(t, g, visitTime, nil)
		}
		slow.recovered.Store(true)
		time.Sleep(external.OpenFor + 1)
		for n := range 3 {
			c, _ := visitWithin(t, g, visitTime, nil)
			expect.False(t, slices.Contains(c.Degraded, degradedModel), "visit %d is degraded: %v", n, c.Degraded)
		}
		expect.Equal(t, slow.hits.Load(), external.Failures+3, "calls")
	})
}

// If all dependencies hang and the backfills of a reactivated user are missing, the chunk is still made in time from the
// waiting candidates.
func TestChunk_MadeInTimeIfAllDependenciesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow hangingService
		d, cfg := newFakePools(2), withoutExploration()
		d.rows[string(layout.KindActivity)] = packed.Encode(&layout.Activity{LastSeen: 1e15, BackfillID: 1e15, Expected: 3})
		for n := range 3 {
			cfg.ExternalSources = append(cfg.ExternalSources, source(schemas.Source(fmt.Sprint("slow", n)),
				external.Config{URL: "http://slow.example/", Timeout: 5 * time.Second}))
		}
		g := generatorWith(t, cfg, Deps{
			Rows: d, Dial: slow.dial(t), Extensions: Extensions{Score: slow.score},
		})
		c, _ := visitWithin(t, g, visitTime, func(r *schemas.ChunkRequest) { r.Announced = true })
		want := []string{"source:slow0", "source:slow1", "source:slow2", degradedReactivating, degradedModel}
		expect.NoDiff(t, c.Degraded, want, "degraded")
		expect.Equal(t, len(c.Served.Items), 2, "items")
		expect.Equal(t, slow.hits.Load(), 4, "calls of three sources and the score")
	})
}
