package actors

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// The default steps are 0.5 below -2, 1, 1.5 from 3, 2 from 8 and 3 from 20. A step is left a fifth below its start.
func TestStepsNext(t *testing.T) {
	cfg := DefaultConfig()
	tests := []struct {
		name  string
		told  float32
		value float64
		want  float32
	}{
		{"nothing yet", 1, 0, 1},
		{"just below a step", 1, 2.999, 1},
		{"on it", 1, 3, 1.5},
		{"two steps at once", 1, 8, 2},
		{"back into the band", 1.5, 2.5, 1.5},
		{"through the band", 1.5, 2.399, 1},
		{"from far up", 3, 2.5, 1},
		{"in the band of the step below as well", 3, 2.999, 1},
		{"dislike within its band", 1, -2.3, 1},
		{"dislike", 1, -2.5, 0.5},
		{"forgiven", 0.5, -1.9, 1},
		{"a weight that is no step any more", 1.7, 4, 1.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cfg.Steps.next(tt.told, tt.value, cfg.Band); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// The weight is never below the affinity's step, and never above it by more than the band allows.
func TestStepsKeepTheirBand(t *testing.T) {
	cfg := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		told := initialWeight
		for _, value := range rapid.SliceOf(rapid.Float64Range(-30, 30)).Draw(t, "values") {
			told = cfg.Steps.next(told, value, cfg.Band)
			plain := cfg.Steps[cfg.Steps.at(value)].Weight
			widened := cfg.Steps[cfg.Steps.at(value+cfg.Band*math.Abs(value)/(1-cfg.Band))].Weight
			if told < plain || told > widened {
				t.Errorf("at %v: weight %v, want %v to %v", value, told, plain, widened)
			}
			if again := cfg.Steps.next(told, value, cfg.Band); again != told {
				t.Errorf("at %v: weight %v, then %v", value, told, again)
			}
		}
	})
}

// For any initial affinity, the timers reduce the weight when the affinity has decayed below the floor: not earlier, and at
// most a millisecond late, or a second after the last timer. They end.
func TestFacetFadesOnTime(t *testing.T) {
	cfg := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		now := schemas.Micros(1.7e15)
		f := facet{sentWeight: initialWeight}
		f.decayed = f.add(rapid.Float64Range(-100, 1000).Draw(t, "sum"), now, cfg.HalfLife)
		f.updateWeight(cfg, now)
		for range 10 {
			wake := f.nextChange(cfg, now)
			if wake == 0 {
				if f.sentWeight != initialWeight {
					t.Errorf("stays at %v for ever", f.sentWeight)
				}
				return
			}
			if early := f; wake > now+1_002_000 && early.updateWeight(cfg, wake-2000) {
				t.Errorf("moves from %v to %v before it is woken", f.sentWeight, early.sentWeight)
			}
			before := f
			if !f.updateWeight(cfg, wake) {
				t.Errorf("woken at %v for nothing: affinity %v, weight %v", wake, f.at(wake, cfg.HalfLife), f.sentWeight)
			}
			if f.sentAt <= before.sentAt {
				t.Errorf("moved at %d, before at %d", f.sentAt, before.sentAt)
			}
			now = wake
		}
		t.Errorf("still moving, weight %v", f.sentWeight)
	})
}

// fanout orders weights by time, so two changes within one millisecond must have different times.
func TestFacetMovesAreOrdered(t *testing.T) {
	cfg := DefaultConfig()
	f := facet{sentWeight: initialWeight}
	for i, sum := range []float64{3, 8, 0} {
		f.decayed = decayed{sum, 1000}
		if !f.updateWeight(cfg, 1000) || f.sentAt != schemas.Micros(1000+i) {
			t.Errorf("move %d: got time %d, want %d", i, f.sentAt, 1000+i)
		}
	}
}

func TestConfig(t *testing.T) {
	inf := math.Inf(-1)
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"defaults", func(*Config) {}, nil},
		{"all at once", func(c *Config) { c.HalfLife, c.Top, c.Every, c.Band = time.Minute, 0, 0, math.NaN() },
			[]string{"half_life: 1m:", "top: 0", "every: 0s", "band: NaN"}},
		{"fewer kept than sent", func(c *Config) { c.MaxFacets = 49 }, []string{"max_facets: 49: want 50 to 10000"}},
		{"verbs", func(c *Config) { c.Verbs = schemas.Verbs{"x": math.Inf(1)} }, []string{`verb "x"`}},
		{"no steps", func(c *Config) { c.Steps = nil }, []string{"steps: 0 steps"}},
		{"first step", func(c *Config) { c.Steps = Steps{{-5, 1}} }, []string{"steps[0].from: -5, must be -.inf"}},
		{"order and weight", func(c *Config) { c.Steps = Steps{{inf, 1}, {3, 2}, {2, 3}, {5, -1}} },
			[]string{"steps[2]: from and weight", "steps[3].weight: -1", "steps[3]: from and weight"}},
		{"a step at none", func(c *Config) { c.Steps = Steps{{inf, 0.5}, {0, 1}} }, []string{"steps[1].from: 0"}},
		{"not 1 at first", func(c *Config) { c.Steps = Steps{{inf, 2}} }, []string{"steps: weight 2 at affinity 0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := cfg.Validate()
			if len(tt.want) == 0 && err != nil {
				t.Errorf("got %v, want none", err)
			}
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want it to say %q", err, part)
				}
			}
		})
	}
}
