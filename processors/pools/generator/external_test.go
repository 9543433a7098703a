package generator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// responding starts a service that responds with the result of respond; nil is a failure.
func responding[Q any](t *testing.T, respond func(q Q) any) external.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q Q
		expect.Error(t, json.NewDecoder(r.Body).Decode(&q), "", "decode the request")
		a := respond(q)
		if a == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		expect.Error(t, json.NewEncoder(w).Encode(a), "", "encode the answer")
	}))
	t.Cleanup(server.Close)
	return external.Config{URL: server.URL, Timeout: 10 * time.Second}
}

func respondingText(t *testing.T, text string) external.Config {
	return responding(t, func(any) any { return json.RawMessage(text) })
}

// externalChunk makes a chunk of the feed home with all waiting and offered candidates.
func externalChunk(t *testing.T, d *fakePools, cfg Config, metrics prometheus.Registerer) *schemas.Chunk {
	t.Helper()
	hot := NewHot(nil)
	hot.Change("", nil, &schemas.HotPin{Pin: "pin:x", Author: "user:a", Impressions: 1e6})
	g := generatorWith(t, cfg, Deps{Rows: d, Deleted: deletedtest.Of("user:deleted"), Hot: hot, Metrics: metrics})
	r := request("v1")
	r.Feed, r.Limit, r.Time = rules.Home, 100, 1e15
	return must.Get(g.Chunk(t.Context(), r))(t)
}

// withoutExploration returns the default configuration without exploration, which is random, and without caps.
func withoutExploration() Config {
	cfg := DefaultConfig()
	home := cfg.Feeds[rules.Home]
	home.Shares = maps.Clone(home.Shares)
	delete(home.Shares, schemas.Explore)
	home.Caps, home.PopularityWeight = rules.Caps{}, 0
	cfg.Feeds = rules.Feeds{rules.Home: home, "plain": cfg.Feeds["plain"]}
	return cfg
}

func source(name schemas.Source, service external.Config) ExternalSource {
	return ExternalSource{Name: name, Config: service, MaxCandidates: 9, Share: 1}
}

func pinsFrom(c *schemas.Chunk, source schemas.Source) []schemas.PinID {
	list := []schemas.PinID{}
	for _, it := range c.Served.Items {
		if it.Source == source {
			list = append(list, it.Pin)
		}
	}
	return list
}

// Candidates of external sources are filtered like all others: malformed, repeated, excess, seen and blocked ones are
// dropped, and so are pins by the user or by a deleted author. The rest is returned best first.
func TestExternalSource_FiltersCandidates(t *testing.T) {
	d := newFakePools(0)
	poolstest.SetState(d.rows, layout.State{Head: 1})
	d.markSeen(schemas.PinID("pin:seen"))
	d.rows[string(layout.GraphRow(layout.RegisterBlock, "interest:no"))] = []byte{}
	cfg := withoutExploration()
	const future = 1 << 60
	cfg.ExternalSources = []ExternalSource{source("trends", responding(t, func(q sourceRequest) any {
		expect.Equal(t, q, (sourceRequest{User: poolstest.Owner, Feed: rules.Home, Limit: 9}), "request")
		pin := func(id, author string, score float64, more ...any) map[string]any {
			m := map[string]any{"pin": id, "author": author, "score": score, "created": "2020-01-01T00:00:00Z"}
			for i := 0; i < len(more); i += 2 {
				m[more[i].(string)] = more[i+1]
			}
			return m
		}
		return map[string]any{"candidates": []any{
			pin("pin:low", "user:a", -5), pin("pin:seen", "user:a", 9), pin("pin:mine", string(poolstest.Owner), 9),
			pin("pin:blocked", "user:a", 9, "interests", []string{"interest:no"}), pin("pin:orphan", "user:deleted", 9),
			pin("pin:top", "user:a", 1), pin("pin:top", "user:a", 7, "created", 1577836800000000, "board", nil),
			pin("bad", "user:a", 9), pin("pin:soon", "user:a", 9, "created", int64(future)), pin("pin:no-author", "", 9),
			pin("pin:mid", "user:a", 3), pin("pin:2", "user:a", 2), pin("pin:over", "user:a", 8),
		}}
	}))}
	reg := prometheus.NewRegistry()
	c := externalChunk(t, d, cfg, reg)
	expect.NoDiff(t, pinsFrom(c, "trends"), []schemas.PinID{"pin:top", "pin:mid", "pin:2", "pin:low"}, "candidates")
	if len(c.Degraded) > 0 || len(c.Served.Items) != 4 || c.Served.Items[0].Created != 1577836800000000 {
		t.Errorf("degraded %v, items %+v", c.Degraded, c.Served.Items)
	}
	expect.NoDiff(t, metricstest.Values(t, reg, "smartfeed_generator_rejected_candidates_total"), map[string]float64{"trends": 4}, "refused")
}

// The candidates of a pool and of an external source with the same name are merged.
func TestExternalSource_MergesWithPool(t *testing.T) {
	d := newFakePools(3) // editors: 0, -1, -2
	cfg := withoutExploration()
	cfg.ExternalSources = []ExternalSource{source("editors", respondingText(t, `{"candidates":[
		{"pin":"pin:new","author":"user:a","created":1,"score":-0.5},{"pin":"pin:2","author":"user:a","created":1,"score":5}]}`))}
	c := externalChunk(t, d, cfg, nil)
	expect.NoDiff(t, pinsFrom(c, "editors"), []schemas.PinID{"pin:2", "pin:0", "pin:new", "pin:1"}, "candidates")
}

// If external services fail, the chunk is still made and is degraded.
func TestExternal_FailuresDegradeChunk(t *testing.T) {
	cfg := withoutExploration()
	hang := make(chan struct{})
	defer close(hang)
	slow := responding(t, func(any) any { <-hang; return nil })
	slow.Timeout = 10 * time.Millisecond
	fails := func(any) any { return nil }
	cfg.ExternalSources = []ExternalSource{
		source("slow", slow), source("broken", responding(t, fails)), source("odd", respondingText(t, `{"candidates":7}`)),
		source("fine", respondingText(t, `{"candidates":[{"pin":"pin:fine","author":"user:a","created":1,"score":1}]}`)),
		source("late", respondingText(t, `{"candidates":[{"pin":"pin:late","author":"user:a","created":"yesterday","score":1}]}`)),
	}
	cfg.Model = inference.Config{Config: responding(t, fails), MaxCandidates: 10}
	reg := prometheus.NewRegistry()
	c := externalChunk(t, newFakePools(2), cfg, reg)
	expect.NoDiff(t, c.Degraded, []string{"source:broken", "source:late", "source:odd", "source:slow", "model"}, "degraded")
	expect.Equal(t, len(c.Served.Items), 3, "items %v: two of the pool and one offered", pinsOf(c.Served.Items))
	want := map[string]float64{
		"success fine": 1, "error broken": 1, "error late": 1, "error model": 1, "error odd": 1, "timeout slow": 1,
	}
	expect.NoDiff(t, metricstest.Values(t, reg, "smartfeed_generator_external_calls_total"), want, "calls")
}

func TestExternalSource_NotCalledWithoutShare(t *testing.T) {
	cfg := withoutExploration()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Shares = maps.Clone(home.Shares)
		home.Shares["trends"] = 0
	})
	cfg.ExternalSources = []ExternalSource{source("trends", responding(t, func(any) any {
		t.Error("the source was called")
		return nil
	}))}
	expect.NoDiff(t, externalChunk(t, newFakePools(2), cfg, nil).Degraded, nil, "degraded")
}

// modelQuestion is a request to a model in JSON.
type modelQuestion struct {
	User       schemas.UserID
	Feed       string
	Candidates []inference.Candidate
	Outputs    []string
}

func TestExternalModel_ChangesScores(t *testing.T) {
	d := newFakePools(4)
	cfg := withoutExploration()
	cfg.Model.Config = responding(t, func(q modelQuestion) any {
		if q.User != poolstest.Owner || q.Feed != rules.Home || len(q.Candidates) != 3 {
			t.Errorf("request %+v, want three candidates", q)
		}
		first := inference.Candidate{Pin: "pin:0", Source: "editors", Created: time.UnixMicro(0).UTC(), Facets: schemas.Facets{Author: "user:a"}}
		expect.NoDiff(t, q.Candidates[0], first, "candidate")
		return map[string]any{"scores": map[schemas.PinID]float64{"pin:2": 5, "pin:1": -7, "pin:0": 1e300}}
	})
	cfg.Model.MaxCandidates = 3
	c := externalChunk(t, d, cfg, nil)
	expectPins(t, c.Served.Items, "pin:2", "pin:0", "pin:3", "pin:1")
	expect.Equal(t, c.Served.Items[0].RankScore, 3, "score")
}

func TestScored_TakesFromAllPools(t *testing.T) {
	pool := func(source schemas.Source, n int) rules.Pool {
		p := rules.Pool{Source: source}
		for i := range n {
			p.Candidates = append(p.Candidates, rules.Candidate{Pin: schemas.PinID(fmt.Sprintf("pin:%s%d", source, i)), Created: -1 << 63})
		}
		return p
	}
	var got []schemas.PinID
	list, pins := modelCandidates([]rules.Pool{pool("a", 1), pool("b", 3), pool("c", 2)}, 5)
	for _, c := range list {
		got = append(got, c.Pin)
		expect.Error(t, expect.ErrorOf(json.Marshal(c)), "", "encode the candidate")
	}
	expect.NoDiff(t, got, pins, "candidates")
	expect.NoDiff(t, got, []schemas.PinID{"pin:a0", "pin:b0", "pin:c0", "pin:b1", "pin:c1"}, "candidates for the model")
	list, _ = modelCandidates([]rules.Pool{pool("a", 2)}, 5)
	expect.Equal(t, len(list), 2, "candidates")
}

func TestConfig_Validate(t *testing.T) {
	good := DefaultConfig()
	good.ExternalSources = []ExternalSource{source("trends", external.Config{URL: "http://x/", Timeout: time.Second})}
	good.Model.URL = "http://y/"
	must.OK(t, errors.Join(DefaultConfig().Validate(), good.Validate()))
	bad := Config{CandidatesPerSource: 1, ReactivationTimeout: -1,
		ExternalSources: []ExternalSource{{Name: "following", Share: -1}, {Name: "x", MaxCandidates: 1, Config: external.Config{URL: "http://x/", Timeout: time.Second}}, {Name: "x", MaxCandidates: 1001}},
		Model:           inference.Config{Config: external.Config{URL: "y"}}}
	want := strings.Split(`candidates_per_source: 1: want 100 to 1000
reactivation_timeout: -1ns: want 0s to 1m
feeds: want at least one
external_sources[0].timeout: 0s: want 1ms to 10s
external_sources[0].url: "": want an http or https address
external_sources[0].max_candidates: 0: want 1 to 1000
external_sources[0].name: "following": reserved name: following
external_sources[0].share: -1: want 0 to 1e9
external_sources[2].timeout: 0s: want 1ms to 10s
external_sources[2].url: "": want an http or https address
external_sources[2].max_candidates: 1001: want 1 to 1000
external_sources[2].name: "x": want a unique name
model.timeout: 0s: want 1ms to 10s
model.url: "y": want an http or https address
model.max_candidates: 0: want 1 to 1000`, "\n")
	expect.NoDiff(t, strings.Split(bad.Validate().Error(), "\n"), want, "problems")
}
