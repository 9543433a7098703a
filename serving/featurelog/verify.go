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

// Arrived is an action of the log and its arrival time, which decides whether an answer could include it.
type Arrived struct {
	schemas.EnrichedAction
	At schemas.Micros
}

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
	defs     map[string]feature.Definition
	byUser   map[schemas.UserID][]Arrived
	byPin    map[schemas.PinID][]Arrived
	pins     map[schemas.PinID]*pinHistory
	byKey    bool // a record has embeddings by key, so the pins of its user's actions are needed
	complete bool // pins has every existing pin that is needed
	drifts   map[string]*Drift
}

// NewVerifier returns a verifier without actions.
func NewVerifier(defs []feature.Definition) *Verifier {
	v := &Verifier{
		defs: map[string]feature.Definition{}, drifts: map[string]*Drift{},
		byUser: map[schemas.UserID][]Arrived{}, byPin: map[schemas.PinID][]Arrived{}, pins: map[schemas.PinID]*pinHistory{},
	}
	for _, d := range defs {
		v.defs[d.Name] = d
	}
	return v
}

// Expect registers the entities of a record. The verifier keeps data only for registered entities. Call Expect with
// every record, then Add with every action, then AddPin with all data about pins, then Compare.
func (v *Verifier) Expect(rec *schemas.LoggedFeatures) {
	switch {
	case rec.User == "" && v.byPin[rec.Pin] == nil:
		v.byPin[rec.Pin] = []Arrived{}
	case rec.User != "" && v.byUser[rec.User] == nil:
		v.byUser[rec.User] = []Arrived{}
	}
	if rec.Pin != "" {
		v.pins[rec.Pin] = &pinHistory{}
	}
	v.byKey = v.byKey || slices.ContainsFunc(rec.Values, func(value schemas.FeatureValue) bool { return v.defs[value.Feature].Lookup })
}

// Add adds an action of the log, or an impression of a visit: an action without an actor and with the verb
// schemas.ImpressionCount. With an actor, it is an impression that a client reported, which does not count for the pin.
func (v *Verifier) Add(a Arrived) {
	if list, ok := v.byUser[a.Actor]; ok {
		v.byUser[a.Actor] = append(list, a)
		if pin := schemas.PinID(a.Object); v.byKey && v.pins[pin] == nil {
			v.pins[pin] = &pinHistory{}
		}
	}
	if list, ok := v.byPin[schemas.PinID(a.Object)]; ok && (a.Verb != schemas.ImpressionCount || a.Actor == "") {
		v.byPin[schemas.PinID(a.Object)] = append(list, a)
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
		now, sure := v.compute(def, rec, cut{actions: math.MaxInt64, pins: rec.Logged})
		if !sure {
			drift.Skipped++
			continue
		}
		drift.compare(value, now, func() bool {
			return slices.ContainsFunc(v.cuts(def, rec), func(by cut) bool {
				then, sure := v.compute(def, rec, by)
				return sure && equal(value, then)
			})
		})
	}
}

// recomputed reports whether a definition can be computed from the topics. The mean of a pin's recent actors cannot,
// because it depends on the order of their arrival.
func recomputed(d feature.Definition) bool {
	return d.Entity != feature.Pin || d.Aggregate != feature.MeanEmbedding
}

// MaxInFlight is the maximum time that an action, or data about a pin, takes to reach the store.
const MaxInFlight = 10 * time.Second

// maxCuts limits how often a value is recomputed.
const maxCuts = 200

// cut holds the arrival times up to which a store had applied actions and pins. The store applies each in the order of
// arrival, but not both together.
type cut struct{ actions, pins schemas.Micros }

// cuts returns the states that the store may have had for a record's entity at the time of the answer.
func (v *Verifier) cuts(def feature.Definition, rec *schemas.LoggedFeatures) []cut {
	from := rec.Logged - schemas.Micros(MaxInFlight.Microseconds())
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
	for _, h := range v.pinsOf(def, rec) {
		for _, at := range h.arrivals() {
			if under(at) {
				pins = append(pins, at-1)
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

// pinsOf returns the data of the pins that a value depends on.
func (v *Verifier) pinsOf(def feature.Definition, rec *schemas.LoggedFeatures) []*pinHistory {
	var all []*pinHistory
	if rec.User != "" && rec.Pin != "" {
		all = append(all, v.pins[rec.Pin])
	}
	if def.Lookup {
		for _, a := range v.byUser[rec.User] {
			all = append(all, v.pins[schemas.PinID(a.Object)])
		}
	}
	return slices.DeleteFunc(all, func(h *pinHistory) bool { return h == nil })
}

// compute evaluates a definition for a record, with the data that had arrived up to by. sure is false if the topics may
// have deleted data about a pin.
func (v *Verifier) compute(d feature.Definition, rec *schemas.LoggedFeatures, by cut) (value schemas.FeatureValue, sure bool) {
	sure = true
	pins := func(pin schemas.PinID) (feature.PinAttributes, bool) {
		own, known, said := v.pins[pin].at(by.pins)
		sure = sure && (said || v.complete)
		return own, known
	}
	span := feature.Span{AsOf: rec.AsOf, Now: rec.Logged}
	var res feature.Result
	switch d.Entity {
	case feature.Pin:
		res = feature.ReferenceItems(d, rec.Logged, itemCounts(v.byPin[rec.Pin], by.actions, v.pins[rec.Pin].deleted()))
	case feature.Pair:
		res = feature.ReferencePair(d, span, v.actions(rec.User, by.actions), rec.Pin, pins)
	default:
		res = feature.ReferenceByKey(d, span, v.actions(rec.User, by.actions), pins)
	}
	var reasons []string
	for _, r := range res.Reasons {
		reasons = append(reasons, string(r))
	}
	return logged(d.Name, res.Value, reasons), sure
}

// actions returns the actions of a user that arrived up to by.
func (v *Verifier) actions(user schemas.UserID, by schemas.Micros) []schemas.EnrichedAction {
	var all []schemas.EnrichedAction
	for _, a := range v.byUser[user] {
		if a.At <= by {
			all = append(all, a.EnrichedAction)
		}
	}
	return all
}

// itemCounts counts a pin's actions and impressions like the group objects, which drops those that arrive after the
// pin's deletion. (It drops such actions before they reach their topic.)
func itemCounts(actions []Arrived, by, deleted schemas.Micros) []schemas.ItemCounts {
	steps := map[schemas.Micros]*schemas.ItemCounts{}
	for _, a := range actions {
		if a.At > by || a.At > deleted && a.Actor == "" {
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
		if a.Actor != "" { // not an impression
			steps[start].Actors = steps[start].Actors.Add(string(a.Actor))
		}
	}
	var all []schemas.ItemCounts
	for _, c := range steps {
		all = append(all, *c)
	}
	return all
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
	all := make([]Drift, 0, len(v.drifts))
	for _, d := range v.drifts {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Drift) int { return cmp.Compare(a.Feature, b.Feature) })
	return all
}

// Bad returns the number of values whose difference late actions do not explain.
func (d Drift) Bad() int { return d.Mismatched + d.Missing }
