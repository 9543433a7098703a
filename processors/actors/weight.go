package actors

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// Step is an edge weight for affinities from MinAffinity up to the next step.
type Step struct {
	MinAffinity float64
	Weight      float32
}

// Steps are the edge weights by affinity, both in ascending order. The first has MinAffinity −∞, and no other has 0. The step
// that contains an affinity of 0 has weight 1, the initial weight of an edge.
type Steps []Step

// initialWeight is the weight of an edge for which none was sent.
const initialWeight float32 = 1

// at returns the index of the step that contains an affinity.
func (s Steps) at(value float64) int {
	i := 0
	for i+1 < len(s) && value >= s[i+1].MinAffinity {
		i++
	}
	return i
}

// of returns the index of the step with a weight. It returns false if there is none: an earlier program had other steps.
func (s Steps) of(weight float32) (int, bool) {
	i := slices.IndexFunc(s, func(step Step) bool { return step.Weight == weight })
	return max(i, 0), i >= 0
}

// lowerBound returns the affinity below which the weight leaves step i: its MinAffinity, less the band.
func (s Steps) lowerBound(i int, band float64) float64 {
	if i == 0 {
		return math.Inf(-1)
	}
	return s[i].MinAffinity - band*math.Abs(s[i].MinAffinity)
}

// next returns the weight for an affinity; sent is the last weight of the edge. The weight rises as soon as the next
// step is reached, and falls when the affinity is below the lower bound of its step.
func (s Steps) next(sent float32, value, band float64) float32 {
	here := s.at(value)
	if i, ok := s.of(sent); ok && here < i && value >= s.lowerBound(i, band) {
		return sent
	}
	return s[here].Weight
}

// decaysTo returns the affinity at which the weight changes through decay alone. It returns false if the weight stays.
func (s Steps) decaysTo(sent float32, value, band float64) (float64, bool) {
	i, _ := s.of(sent)
	switch {
	case value > 0 && s[i].MinAffinity > 0:
		return s.lowerBound(i, band), true
	case value < 0 && i+1 < len(s) && s[i+1].MinAffinity < 0:
		return s[i+1].MinAffinity, true
	}
	return 0, false
}

// facet is the state of a user's affinity for one author, board or interest.
type facet struct {
	decay.Amount
	sentWeight float32        // the weight last sent to fanout
	sentAt     schemas.Micros // when it was sent; 0: never; strictly increasing
	timerAt    schemas.Micros // when the timer fires; 0: no timer is set
}

// Pack implements packed.Row.
func (f *facet) Pack(p *packed.Packer) {
	p.Version(2)
	f.Amount.Pack(p)
	packed.Float32(p, &f.sentWeight)
	packed.Int(p, &f.sentAt)
	packed.Int(p, &f.timerAt)
}

// updateWeight updates the weight as of now. It reports whether the weight has changed and must be sent.
func (f *facet) updateWeight(cfg Config, now schemas.Micros) bool {
	w := cfg.EdgeWeightSteps.next(f.sentWeight, f.At(now, cfg.AffinityHalfLife), cfg.EdgeWeightHysteresis)
	if w == f.sentWeight {
		return false
	}
	f.sentWeight, f.sentAt = w, max(now, f.sentAt+1)
	return true
}

// nextChange returns when decay may next change the weight, or 0 for never. It is at least a second after now,
// regardless of rounding errors.
func (f *facet) nextChange(cfg Config, now schemas.Micros) schemas.Micros {
	target, ok := cfg.EdgeWeightSteps.decaysTo(f.sentWeight, f.Value, cfg.EdgeWeightHysteresis)
	if !ok {
		return 0
	}
	const second = 1e6
	// After another millisecond, the affinity is certainly below the bound.
	return max(f.Reaches(target, cfg.AffinityHalfLife)+1000, now+second)
}
