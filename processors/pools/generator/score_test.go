package generator

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// scoredChunk makes a chunk of four pins with a model whose features come from features.
func scoredChunk(t *testing.T, cfg Config, features Features) *schemas.Chunk {
	t.Helper()
	g := generatorWith(t, cfg, Deps{Rows: newFakePools(4), Features: features})
	r := request("v1")
	r.Feed, r.Time = rules.Home, 1e15
	return must.Get(g.Chunk(t.Context(), r))(t)
}

func withFeatures(t *testing.T, respond func(modelQuestion) any) Config {
	cfg := withoutExploration()
	cfg.Model.Config = responding(t, respond)
	cfg.Model.Features, cfg.Model.MissingValue = []string{"clicks", "taste"}, -1
	return cfg
}

func TestModel_ReceivesFeatures(t *testing.T) {
	cfg := withFeatures(t, func(q modelQuestion) any {
		heads := map[string]map[schemas.PinID]float32{"save": {}, "hide": {}}
		for _, c := range q.Candidates {
			heads["save"][c.Pin], heads["hide"][c.Pin] = c.Features["clicks"], c.Features["taste"]
		}
		expect.NoDiff(t, q.Outputs, []string{"hide", "save"}, "outputs")
		return map[string]any{"outputs": heads}
	})
	home := cfg.Feeds[rules.Home]
	home.Utility, home.ModelWeight = map[string]float64{"save": 3, "hide": -5}, 2
	cfg.Feeds[rules.Home] = home
	values := map[schemas.PinID][]float32{"pin:0": {0, 0}, "pin:1": {1, 0}, "pin:2": {4, 1}, "pin:3": {1.5, float32(math.NaN())}}
	c := scoredChunk(t, cfg, func(_ context.Context, user schemas.UserID, pins []schemas.PinID, names []string) (rows [][]float32, err error) {
		if user != poolstest.Owner || !slices.Equal(names, []string{"clicks", "taste"}) || len(pins) != 4 {
			t.Errorf("asked for %v of %s and %v", names, user, pins)
		}
		for _, pin := range pins {
			rows = append(rows, slices.Clone(values[pin]))
		}
		return rows, nil
	})
	for _, it := range c.Served.Items {
		v := values[it.Pin]
		if math.IsNaN(float64(v[1])) {
			v[1] = -1
		}
		number := map[schemas.PinID]float64{"pin:0": 0, "pin:1": -1, "pin:2": -2, "pin:3": -3}[it.Pin]
		expect.Equal(t, it.RankScore, schemas.RankScore(number+2*float64(3*v[0]-5*v[1])), "%s: score", it.Pin)
	}
	expectPins(t, c.Served.Items, "pin:3", "pin:2")
}

func TestModel_IgnoresMissingAndLargeOutputs(t *testing.T) {
	cfg := withoutExploration()
	cfg.Model.Config = responding(t, func(modelQuestion) any {
		heads := map[string]map[schemas.PinID]float64{"save": {"pin:0": 1e7, "pin:1": 1, "pin:2": 0, "pin:3": 3}, "hide": {"pin:0": 0, "pin:2": 0, "pin:3": 0}}
		return map[string]any{"outputs": heads}
	})
	changeHome(cfg.Feeds, func(home *rules.Feed) { home.Utility = map[string]float64{"save": 5, "hide": 1} })
	c := scoredChunk(t, cfg, nil)
	expectPins(t, c.Served.Items, "pin:3", "pin:0")
	expect.Equal(t, c.Served.Items[1].RankScore, 0, "pin:0: score")
}

// A model is not asked without the values of its features: its answer would be wrong.
func TestModel_NotAskedWithoutFeatures(t *testing.T) {
	for name, features := range map[string]Features{
		"failed": func(context.Context, schemas.UserID, []schemas.PinID, []string) ([][]float32, error) {
			return nil, errors.New("store")
		},
		"late": func(ctx context.Context, _ schemas.UserID, _ []schemas.PinID, _ []string) ([][]float32, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withFeatures(t, func(modelQuestion) any { t.Error("the model was asked"); return nil })
			cfg.Model.Timeout = 20 * time.Millisecond
			c := scoredChunk(t, cfg, features)
			expectPins(t, c.Served.Items, "pin:0", "pin:1")
			expect.NoDiff(t, c.Degraded, []string{degradedModel}, "degraded")
		})
	}
}

func TestNew_RejectsFeaturesOfModelWithoutStore(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model.URL, cfg.Model.Features = "http://x/", []string{"clicks"}
	if g, err := New(layout.DefaultConfig(), cfg, Deps{}); err == nil {
		g.Close()
		t.Error("got no error")
	}
}
