package featurelog

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Arrived is an action of the log with when it arrived: what an answer could know of.
type Arrived struct {
	schemas.EnrichedAction
	At schemas.Micros
}

// Drift is how a feature's logged values differ from those computed again.
type Drift struct {
	Feature  string `json:"feature"`
	Compared int    `json:"compared"` // Equal + Late + Mismatched + Missing
	Equal    int    `json:"equal"`
	// Late values differ, and are equal to what follows from the entity's actions up to some arrival in the UnderWay
	// before the answer: the rest came too late for it. The store takes an entity's actions in the order of their arrival.
	Late       int     `json:"late"`
	Mismatched int     `json:"mismatched"`
	Missing    int     `json:"missing"` // one of the two is null
	Skipped    int     `json:"skipped"` // not compared: not evaluated in time, or not from actions alone
	SMAPE      float64 `json:"smape"`   // mean of 2|a−b|/(|a|+|b|) over all numbers compared, 0 to 2

	numbers int
}

// tolerance is how far two numbers may be apart and equal: embeddings come as 32 bits.
const tolerance = 1e-6

// Verifier computes logged values again.
type Verifier struct {
	defs   map[string]feature.Definition
	byUser map[schemas.UserID][]Arrived
	byPin  map[schemas.PinID][]Arrived
	drifts map[string]*Drift
}

// NewVerifier makes a verifier that knows no actions yet.
func NewVerifier(defs []feature.Definition) *Verifier {
	v := &Verifier{
		defs: map[string]feature.Definition{}, drifts: map[string]*Drift{},
		byUser: map[schemas.UserID][]Arrived{}, byPin: map[schemas.PinID][]Arrived{},
	}
	for _, d := range defs {
		v.defs[d.Name] = d
	}
	return v
}

// Expect makes room for the actions of an entity. Actions of others are not kept by Add.
func (v *Verifier) Expect(rec *schemas.LoggedFeatures) {
	switch {
	case rec.User != "" && rec.Pin == "":
		if v.byUser[rec.User] == nil {
			v.byUser[rec.User] = []Arrived{}
		}
	case rec.User == "" && rec.Pin != "":
		if v.byPin[rec.Pin] == nil {
			v.byPin[rec.Pin] = []Arrived{}
		}
	}
}

// Add adds an action of the log.
func (v *Verifier) Add(a Arrived) {
	if list, ok := v.byUser[a.Actor]; ok {
		v.byUser[a.Actor] = append(list, a)
	}
	if list, ok := v.byPin[schemas.PinID(a.Object)]; ok {
		v.byPin[schemas.PinID(a.Object)] = append(list, a)
	}
}

// Compare computes the values of a record again, from the actions that were added.
func (v *Verifier) Compare(rec *schemas.LoggedFeatures) {
	for _, value := range rec.Values {
		drift := v.drifts[value.Feature]
		if drift == nil {
			drift = &Drift{Feature: value.Feature}
			v.drifts[value.Feature] = drift
		}
		def, ok := v.defs[value.Feature]
		if !ok || incomplete(value) || !recomputed(def) || rec.User != "" && rec.Pin != "" {
			drift.Skipped++
			continue
		}
		drift.compare(value, v.compute(def, rec, math.MaxInt64), func() bool {
			return slices.ContainsFunc(v.cuts(rec), func(by schemas.Micros) bool { return equal(value, v.compute(def, rec, by)) })
		})
	}
}

// recomputed says that a definition can be computed from the log of actions alone: no embeddings by key, no impressions.
func recomputed(d feature.Definition) bool {
	switch {
	case d.Aggregate == feature.Ratio:
		return recomputed(*d.Numerator) && recomputed(*d.Denominator)
	case d.Entity == feature.Pin && d.Aggregate == feature.MeanEmbedding:
		return false
	}
	return !d.Lookup && !slices.Contains(d.Verbs, schemas.ImpressionCount)
}

// UnderWay is how long an action may be on its way to the store.
const UnderWay = 10 * time.Second

// maxCuts bounds how often a value is computed again.
const maxCuts = 200

// cuts are the arrivals up to which the store may have known the actions of a record's entity.
func (v *Verifier) cuts(rec *schemas.LoggedFeatures) []schemas.Micros {
	actions := v.byUser[rec.User]
	if rec.User == "" {
		actions = v.byPin[rec.Pin]
	}
	from := rec.Logged - schemas.Micros(UnderWay.Microseconds())
	cuts := []schemas.Micros{from}
	for _, a := range actions {
		if a.At > from && a.At <= rec.Logged && len(cuts) < maxCuts {
			cuts = append(cuts, a.At)
		}
	}
	return cuts
}

// compute evaluates a definition as of a record, over the actions that arrived by a moment.
func (v *Verifier) compute(d feature.Definition, rec *schemas.LoggedFeatures, by schemas.Micros) schemas.FeatureValue {
	var res feature.Result
	if d.Entity == feature.Pin {
		res = feature.ReferenceItems(d, rec.Logged, itemCounts(v.byPin[rec.Pin], by))
	} else {
		var actions []schemas.EnrichedAction
		for _, a := range v.byUser[rec.User] {
			if a.At <= by {
				actions = append(actions, a.EnrichedAction)
			}
		}
		res = feature.Reference(d, feature.Span{AsOf: rec.AsOf, Now: rec.Logged}, actions)
	}
	var reasons []string
	for _, r := range res.Reasons {
		reasons = append(reasons, string(r))
	}
	return logged(d.Name, res.Value, reasons)
}

// itemCounts counts a pin's actions as the group objects does.
func itemCounts(actions []Arrived, by schemas.Micros) []schemas.ItemCounts {
	steps := map[schemas.Micros]*schemas.ItemCounts{}
	for _, a := range actions {
		if a.At > by {
			continue
		}
		start := a.Timestamp - a.Timestamp%schemas.ItemStep
		if start > a.Timestamp { // before 1970
			start -= schemas.ItemStep
		}
		if steps[start] == nil {
			steps[start] = &schemas.ItemCounts{Start: start, Counts: map[string]int64{}}
		}
		steps[start].Counts[string(a.Verb)]++
		steps[start].Actors = steps[start].Actors.Add(string(a.Actor))
	}
	var all []schemas.ItemCounts
	for _, c := range steps {
		all = append(all, *c)
	}
	return all
}

// compare counts one pair of values. wasLate says whether late actions are why they differ.
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

// measure adds the numbers of two values to SMAPE; a number that only one of them has is 0 in the other.
func (d *Drift) measure(a, b schemas.FeatureValue) {
	x, y := numbers(a), numbers(b)
	for name := range union(x, y) {
		d.numbers++
		if sum := math.Abs(x[name]) + math.Abs(y[name]); sum > 0 {
			d.SMAPE += (2*math.Abs(x[name]-y[name])/sum - d.SMAPE) / float64(d.numbers)
		} else {
			d.SMAPE -= d.SMAPE / float64(d.numbers)
		}
	}
}

func union(x, y map[string]float64) map[string]float64 {
	all := maps.Clone(x)
	maps.Copy(all, y)
	return all
}

// numbers are a value's, by where they stand.
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
	all := make([]Drift, 0, len(v.drifts))
	for _, d := range v.drifts {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Drift) int { return cmp.Compare(a.Feature, b.Feature) })
	return all
}

// Bad returns how many values differ, and not because of late actions.
func (d Drift) Bad() int { return d.Mismatched + d.Missing }
