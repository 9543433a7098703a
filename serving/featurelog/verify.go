package featurelog

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Drift is the difference between the logged and the recomputed values of a feature.
type Drift struct {
	Feature  string `json:"feature"`
	Compared int    `json:"compared"` // Equal + Late + Mismatched + Missing
	Equal    int    `json:"equal"`
	// Late values differ, but equal the value of the entity's actions up to some arrival time within MaxInFlight before
	// the answer: the other actions came too late for it. The store applies an entity's actions in the order of their
	// arrival.
	Late       int     `json:"late"`
	Mismatched int     `json:"mismatched"`
	Missing    int     `json:"missing"` // one of the two is null
	Skipped    int     `json:"skipped"` // not compared: not evaluated in time, or from records that the topics have deleted
	SMAPE      float64 `json:"smape"`   // mean of 2|a−b|/(|a|+|b|) over all compared numbers, 0 to 2

	numbers int
}

// tolerance is the maximum difference of equal numbers: embeddings have 32 bits.
const tolerance = 1e-6

// Verifier recomputes logged values.
type Verifier struct {
	*past
	defs   map[string]feature.Definition
	drifts map[string]*Drift
}

// NewVerifier returns a verifier without actions.
func NewVerifier(defs []feature.Definition) *Verifier {
	v := &Verifier{past: newPast(), defs: map[string]feature.Definition{}, drifts: map[string]*Drift{}}
	for _, d := range defs {
		v.defs[d.Name] = d
	}
	return v
}

// Expect registers the entities of a record. The verifier keeps data only for registered entities. Call Expect with
// every record, then Add with every action, then AddPin with all data about pins, then Compare.
func (v *Verifier) Expect(rec *schemas.LoggedFeatures) {
	switch {
	case rec.User == "":
		v.expect(feature.Pin, "", rec.Pin)
	case rec.Pin == "":
		v.expect(feature.User, rec.User, "")
	default:
		v.expect(feature.Pair, rec.User, rec.Pin)
	}
}

// Compare recomputes the values of a record from the added actions.
func (v *Verifier) Compare(rec *schemas.LoggedFeatures) {
	for _, value := range rec.Values {
		drift := v.drifts[value.Feature]
		if drift == nil {
			drift = &Drift{Feature: value.Feature}
			v.drifts[value.Feature] = drift
		}
		def, ok := v.defs[value.Feature]
		if !ok || incomplete(value) || !recomputed(def) {
			drift.Skipped++
			continue
		}
		now, sure := v.logged(def, rec, cut{actions: math.MaxInt64, pins: rec.Logged})
		if !sure {
			drift.Skipped++
			continue
		}
		drift.compare(value, now, func() bool {
			return slices.ContainsFunc(v.cuts(rec), func(by cut) bool {
				then, sure := v.logged(def, rec, by)
				return sure && equal(value, then)
			})
		})
	}
}

// recomputed reports whether a definition can be computed from the topics. The mean of a pin's recent actors cannot,
// because it depends on the order of their arrival. Neither can a sequence, which may contain actions that the topics have
// deleted.
func recomputed(d feature.Definition) bool {
	return d.Aggregate != feature.TakeSequence && (d.Entity != feature.Pin || d.Aggregate != feature.MeanEmbedding)
}

// MaxInFlight is the maximum time that an action, or data about a pin, takes to reach the store.
const MaxInFlight = 10 * time.Second

// maxCuts limits how often a value is recomputed.
const maxCuts = 200

// cuts returns the states that the store may have had for a record's entity at the time of the answer.
func (v *Verifier) cuts(rec *schemas.LoggedFeatures) []cut {
	from := rec.Logged - schemas.MicrosIn(MaxInFlight)
	under := func(at schemas.Micros) bool { return at > from && at <= rec.Logged }
	actions, pins := []schemas.Micros{math.MaxInt64, from}, []schemas.Micros{rec.Logged}
	of := v.byUser[rec.User]
	if rec.User == "" {
		of = v.byPin[rec.Pin]
	}
	for _, a := range of {
		if under(a.At) {
			actions = append(actions, a.At)
		}
	}
	if h := v.pins[rec.Pin]; h != nil && rec.User != "" {
		for _, p := range h.versions {
			if under(p.arrived) {
				pins = append(pins, p.arrived-1)
			}
		}
	}
	var all []cut
	for _, p := range pins {
		for _, a := range actions {
			if len(all) < maxCuts {
				all = append(all, cut{a, p})
			}
		}
	}
	return all
}

// logged recomputes a value of a record in the form of the log.
func (v *Verifier) logged(d feature.Definition, rec *schemas.LoggedFeatures, by cut) (value schemas.FeatureValue, sure bool) {
	res, sure := v.compute(d, rec.User, rec.Pin, feature.Span{AsOf: rec.AsOf, Now: rec.Logged}, by)
	return logged(d.Name, res.Value, schemas.Strings(res.Reasons)), sure
}

// compare compares a pair of values. wasLate reports whether late actions explain a difference.
func (d *Drift) compare(logged, now schemas.FeatureValue, wasLate func() bool) {
	d.Compared++
	d.measure(logged, now)
	switch {
	case equal(logged, now):
		d.Equal++
	case wasLate():
		d.Late++
	case missing(logged) != missing(now):
		d.Missing++
	default:
		d.Mismatched++
	}
}

// measure adds the numbers of two values to SMAPE. A number that only one of them has is 0 in the other.
func (d *Drift) measure(a, b schemas.FeatureValue) {
	x, y := numbers(a), numbers(b)
	both := maps.Clone(x)
	maps.Copy(both, y)
	for name := range both {
		difference := 0.0
		if sum := math.Abs(x[name]) + math.Abs(y[name]); sum > 0 {
			difference = 2 * math.Abs(x[name]-y[name]) / sum
		}
		d.numbers++
		d.SMAPE += (difference - d.SMAPE) / float64(d.numbers)
	}
}

// numbers returns the numbers of a value by their position.
func numbers(v schemas.FeatureValue) map[string]float64 {
	all := map[string]float64{}
	maps.Copy(all, v.Groups)
	if v.Number != nil {
		all[""] = *v.Number
	}
	for i, x := range v.Vector {
		all[string(rune(i))] = x
	}
	for _, c := range v.Top {
		all[c.Value] = float64(c.Count)
	}
	return all
}

func equal(a, b schemas.FeatureValue) bool {
	if missing(a) || missing(b) {
		return missing(a) && missing(b)
	}
	x, y := numbers(a), numbers(b)
	if len(x) != len(y) || (a.Number == nil) != (b.Number == nil) || len(a.Vector) != len(b.Vector) {
		return false
	}
	for name, p := range x {
		q, ok := y[name]
		if !ok || math.Abs(p-q) > tolerance*max(1, math.Abs(p), math.Abs(q)) {
			return false
		}
	}
	return slices.Equal(a.Last, b.Last) && slices.Equal(a.Top, b.Top)
}

// Report returns the drifts, by feature.
func (v *Verifier) Report() []Drift {
	return convert.All(slices.Sorted(maps.Keys(v.drifts)), func(name string) Drift { return *v.drifts[name] })
}

// Bad returns the number of values whose difference late actions do not explain.
func (d Drift) Bad() int { return d.Mismatched + d.Missing }
