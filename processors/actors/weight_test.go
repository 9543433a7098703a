package actors

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// The default steps are 0.5 below -2, 1, 1.5 from 3, 2 from 8 and 3 from 20. The weight leaves a step a fifth below its
// start.
func TestSteps_Next(t *testing.T) {
	cfg := DefaultConfig()
	tests := []struct {
		name  string
		sent  float32
		value float64
		want  float32
	}{
		{"nothing yet", 1, 0, 1},
		{"just below a step", 1, 2.999, 1},
		{"on it", 1, 3, 1.5},
		{"two steps at once", 1, 8, 2},
		{"back into the band", 1.5, 2.5, 1.5},
		{"through the band", 1.5, 2.399, 1},
		{"from a much higher step", 3, 2.5, 1},
		{"also in the band of the step below", 3, 2.999, 1},
		{"dislike within its band", 1, -2.3, 1},
		{"dislike", 1, -2.5, 0.5},
		{"back above a dislike", 0.5, -1.9, 1},
		{"a weight without a step", 1.7, 4, 1.5},
	}
	for _, tt := range tests {
		expect.Equal(t, cfg.EdgeWeightSteps.next(tt.sent, tt.value, cfg.EdgeWeightHysteresis), tt.want, "%s", tt.name)
	}
}

// The weight is never below the affinity's step, and never above it by more than the band allows.
func TestSteps_KeepBand(t *testing.T) {
	cfg := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		sent := initialWeight
		for _, value := range rapid.SliceOf(rapid.Float64Range(-30, 30)).Draw(t, "values") {
			sent = cfg.EdgeWeightSteps.next(sent, value, cfg.EdgeWeightHysteresis)
			plain := cfg.EdgeWeightSteps[cfg.EdgeWeightSteps.at(value)].Weight
			widened := cfg.EdgeWeightSteps[cfg.EdgeWeightSteps.at(value+cfg.EdgeWeightHysteresis*math.Abs(value)/(1-cfg.EdgeWeightHysteresis))].Weight
			expect.Between(t, sent, plain, widened, "weight at %v", value)
			expect.Equal(t, cfg.EdgeWeightSteps.next(sent, value, cfg.EdgeWeightHysteresis), sent, "at %v: the next weight", value)
		}
	})
}

// For any initial affinity, the timers reduce the weight when the affinity has decayed below the lower bound: not
// earlier, and at most a millisecond late, or a second after the last timer. The number of timers is finite.
func TestFacet_DecaysOnTime(t *testing.T) {
	cfg := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		now := schemas.Micros(1.7e15)
		f := facet{sentWeight: initialWeight}
		f.Amount = f.Plus(rapid.Float64Range(-100, 1000).Draw(t, "sum"), now, cfg.AffinityHalfLife)
		f.updateWeight(cfg, now)
		for range 10 {
			wake := f.nextChange(cfg, now)
			if wake == 0 {
				expect.Equal(t, f.sentWeight, initialWeight, "weight")
				return
			}
			if early := f; wake > now+1_002_000 && early.updateWeight(cfg, wake-2000) {
				t.Errorf("weight changes from %v to %v before the timer", f.sentWeight, early.sentWeight)
			}
			before := f
			expect.True(t, f.updateWeight(cfg, wake), "timer at %v changes the affinity %v", wake, f.At(wake, cfg.AffinityHalfLife))
			expect.True(t, f.sentAt > before.sentAt, "sent at %d, previously at %d", f.sentAt, before.sentAt)
			now = wake
		}
		t.Errorf("weight %v still changes", f.sentWeight)
	})
}

// fanout orders weights by time, so two changes within one millisecond must have different times.
func TestFacet_TimesOfWeightsIncrease(t *testing.T) {
	cfg := DefaultConfig()
	f := facet{sentWeight: initialWeight}
	for i, sum := range []float64{3, 8, 0} {
		f.Amount = decay.Amount{Value: sum, Time: 1000}
		if !f.updateWeight(cfg, 1000) || f.sentAt != schemas.Micros(1000+i) {
			t.Errorf("change %d: got time %d, want %d", i, f.sentAt, 1000+i)
		}
	}
}
