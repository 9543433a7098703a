package featurelog

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

const second = schemas.Micros(1e6)

const at = 1_700_000_000 * second

func definitions(t *testing.T) []feature.Definition {
	t.Helper()
	defs := must.Get(feature.Parse("f", []byte(`
features:
- {name: saves, entity: user, verbs: save, aggregate: count, window: 1h}
- {name: pins, entity: user, aggregate: count, window: 1h, group_by: object}
- {name: last, entity: user, aggregate: last, n: 2}
- {name: mean, entity: user, aggregate: mean, of: objectAttributes.price}
- {name: pin_saves, entity: pin, verbs: save, aggregate: count, window: 1h}
- {name: pin_actors, entity: pin, aggregate: distinct, window: 1h}
- {name: shown, entity: pin, verbs: impression, aggregate: count}
- {name: crowd, entity: pin, aggregate: mean_embedding}
- {name: pair_author, entity: pair, aggregate: count, window: 1h, group_by: objectAttributes.author}
- {name: pair_close, entity: pair, aggregate: cosine}
`)))(t)
	return defs
}

// saved returns saves of user:1, one a second up to at, each arriving at once.
func saved(n int) []Arrived {
	var all []Arrived
	for i := range n {
		a := Arrived{At: at - schemas.Micros(i)*second}
		a.EnrichedAction = schemas.EnrichedAction{ID: fmt.Sprint(i), Actor: "user:1", Verb: "save", Object: "pin:1", Timestamp: a.At}
		a.ObjectAttributes.Author, a.ObjectAttributes.Embedding = "user:ada", []float32{5, 0}
		all = append(all, a)
	}
	return all
}

// shown returns impressions of a pin.
func shown(pin schemas.ID, n int) []Arrived {
	all := make([]Arrived, n)
	for i := range all {
		all[i] = Arrived{At: at - second}
		all[i].EnrichedAction = schemas.EnrichedAction{Verb: schemas.ImpressionCount, Object: pin, Timestamp: at - second}
	}
	return all
}

// addPins adds pin:1, whose embedding was different until five seconds ago and changes again in a second, and the deleted
// pin:deleted.
func addPins(v *Verifier) {
	ada := schemas.Facets{Author: "user:ada"}
	v.AddPin(&schemas.PinAttributes{Pin: "pin:deleted", Version: 2, Deleted: true, Facets: ada}, at-50*second)
	v.AddPin(&schemas.PinAttributes{Pin: "pin:deleted", Version: 1, Facets: ada}, at-100*second)
	for version, of := range map[schemas.Version]struct {
		arrived   schemas.Micros
		embedding []float32
	}{1: {at - 100*second, []float32{1, 0}}, 2: {at - 5*second, []float32{3, 4}}, 3: {at + second, []float32{9, 9}}} {
		v.AddPin(&schemas.PinAttributes{Pin: "pin:1", Version: version, Facets: ada, Embedding: of.embedding}, of.arrived)
	}
}

// Data that the topics may have deleted does not count against an answer; data that they never had does.
func TestVerifier_ComparesUnknownPinsIfComplete(t *testing.T) {
	rec := &schemas.LoggedFeatures{
		Entity: "user:1|pin:2", User: "user:1", Pin: "pin:2", AsOf: at, Logged: at,
		Values: []schemas.FeatureValue{{Feature: "pair_author", Number: number(1)}},
	}
	v := NewVerifier(definitions(t))
	v.complete = true
	v.Expect(rec)
	v.Compare(rec)
	if got := v.Report(); len(got) != 1 || got[0].Missing != 1 {
		t.Errorf("got %+v, want one that is missing now", got)
	}
}

// An impression after the deletion of its pin does not count.
func TestVerifier_IgnoresImpressionsOfDeletedPin(t *testing.T) {
	rec := &schemas.LoggedFeatures{
		Entity: "pin:deleted", Pin: "pin:deleted", AsOf: at, Logged: at, Values: []schemas.FeatureValue{{Feature: "shown", Number: number(0)}},
	}
	v := NewVerifier(definitions(t))
	v.Expect(rec)
	for _, a := range shown("pin:deleted", 3) {
		v.Add(a)
	}
	addPins(v)
	v.Compare(rec)
	if got := v.Report(); len(got) != 1 || got[0].Equal != 1 {
		t.Errorf("got %+v, want one that is equal", got)
	}
}

func number(x float64) *float64 { return &x }

func TestVerifier_Drifts(t *testing.T) {
	record := func(values ...schemas.FeatureValue) *schemas.LoggedFeatures {
		return &schemas.LoggedFeatures{Entity: "user:1", User: "user:1", AsOf: at, Logged: at, Values: values}
	}
	pin := func(values ...schemas.FeatureValue) *schemas.LoggedFeatures {
		return &schemas.LoggedFeatures{Entity: "pin:1", Pin: "pin:1", AsOf: at, Logged: at, Values: values}
	}
	pair := func(pin schemas.PinID, values ...schemas.FeatureValue) *schemas.LoggedFeatures {
		return &schemas.LoggedFeatures{Entity: "user:1|" + string(pin), User: "user:1", Pin: pin, AsOf: at, Logged: at, Values: values}
	}
	late := Arrived{At: at + second, EnrichedAction: schemas.EnrichedAction{ID: "late", Actor: "user:1", Verb: "save", Object: "pin:1", Timestamp: at - 100*second}}
	tests := map[string]struct {
		log  *schemas.LoggedFeatures
		more []Arrived
		want Drift
	}{
		"equal":        {record(schemas.FeatureValue{Feature: "saves", Number: number(20)}), nil, Drift{Feature: "saves", Compared: 1, Equal: 1}},
		"another":      {record(schemas.FeatureValue{Feature: "saves", Number: number(60)}), nil, Drift{Feature: "saves", Compared: 1, Mismatched: 1, SMAPE: 1}},
		"late":         {record(schemas.FeatureValue{Feature: "saves", Number: number(20)}), []Arrived{late}, Drift{Feature: "saves", Compared: 1, Late: 1, SMAPE: 2.0 / 41}},
		"in flight":    {record(schemas.FeatureValue{Feature: "saves", Number: number(17)}), nil, Drift{Feature: "saves", Compared: 1, Late: 1, SMAPE: 6.0 / 37}},
		"too long":     {record(schemas.FeatureValue{Feature: "saves", Number: number(5)}), nil, Drift{Feature: "saves", Compared: 1, Mismatched: 1, SMAPE: 30.0 / 25}},
		"groups":       {record(schemas.FeatureValue{Feature: "pins", Groups: map[string]float64{"pin:1": 20}}), nil, Drift{Feature: "pins", Compared: 1, Equal: 1}},
		"other groups": {record(schemas.FeatureValue{Feature: "pins", Groups: map[string]float64{"pin:2": 20}}), nil, Drift{Feature: "pins", Compared: 1, Mismatched: 1, SMAPE: 2}},
		"null":         {record(schemas.FeatureValue{Feature: "mean", Reasons: []string{"empty"}}), nil, Drift{Feature: "mean", Compared: 1, Equal: 1}},
		"not null":     {record(schemas.FeatureValue{Feature: "mean", Number: number(3)}), nil, Drift{Feature: "mean", Compared: 1, Missing: 1, SMAPE: 2}},
		"last": {record(schemas.FeatureValue{Feature: "last", Last: []schemas.LoggedAction{
			{Object: "pin:1", Verb: "save", Time: at}, {Object: "pin:1", Verb: "save", Time: at - second}}}), nil, Drift{Feature: "last", Compared: 1, Equal: 1}},
		"not in time":           {record(schemas.FeatureValue{Feature: "saves", Reasons: []string{"deadline"}}), nil, Drift{Feature: "saves", Skipped: 1}},
		"pair":                  {pair("pin:1", schemas.FeatureValue{Feature: "pair_author", Number: number(20)}), nil, Drift{Feature: "pair_author", Compared: 1, Equal: 1}},
		"pair, another":         {pair("pin:1", schemas.FeatureValue{Feature: "pair_author", Number: number(60)}), nil, Drift{Feature: "pair_author", Compared: 1, Mismatched: 1, SMAPE: 1}},
		"pair, close":           {pair("pin:1", schemas.FeatureValue{Feature: "pair_close", Number: number(0.6)}), nil, Drift{Feature: "pair_close", Compared: 1, Equal: 1}},
		"pair, a moment before": {pair("pin:1", schemas.FeatureValue{Feature: "pair_close", Number: number(1)}), nil, Drift{Feature: "pair_close", Compared: 1, Late: 1, SMAPE: 0.5}},
		"pair, a later version": {pair("pin:1", schemas.FeatureValue{Feature: "pair_close", Number: number(math.Sqrt2 / 2)}), nil,
			Drift{Feature: "pair_close", Compared: 1, Mismatched: 1, SMAPE: (math.Sqrt2 - 1.2) / (math.Sqrt2/2 + 0.6)}},
		"pair, deleted":  {pair("pin:deleted", schemas.FeatureValue{Feature: "pair_author", Reasons: []string{"pin"}}), nil, Drift{Feature: "pair_author", Compared: 1, Equal: 1}},
		"pair, not null": {pair("pin:deleted", schemas.FeatureValue{Feature: "pair_author", Number: number(0)}), nil, Drift{Feature: "pair_author", Compared: 1, Missing: 1}},
		"pair, unknown":  {pair("pin:2", schemas.FeatureValue{Feature: "pair_author", Reasons: []string{"pin"}}), nil, Drift{Feature: "pair_author", Skipped: 1}},
		"recent actors":  {pin(schemas.FeatureValue{Feature: "crowd", Vector: []float64{1}}), nil, Drift{Feature: "crowd", Skipped: 1}},
		"unknown":        {record(schemas.FeatureValue{Feature: "other", Number: number(1)}), nil, Drift{Feature: "other", Skipped: 1}},
		"of a pin":       {pin(schemas.FeatureValue{Feature: "pin_saves", Number: number(20)}), nil, Drift{Feature: "pin_saves", Compared: 1, Equal: 1}},
		"actors":         {pin(schemas.FeatureValue{Feature: "pin_actors", Number: number(1)}), nil, Drift{Feature: "pin_actors", Compared: 1, Equal: 1}},
		"impressions":    {pin(schemas.FeatureValue{Feature: "shown", Number: number(2)}), nil, Drift{Feature: "shown", Compared: 1, Equal: 1}},
		"another user": {&schemas.LoggedFeatures{User: "user:2", Values: []schemas.FeatureValue{{Feature: "saves", Number: number(0)}}}, nil,
			Drift{Feature: "saves", Compared: 1, Equal: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := NewVerifier(definitions(t))
			v.Expect(tt.log)
			for _, a := range slices.Concat(saved(20), shown("pin:1", 2), tt.more) {
				v.Add(a)
			}
			addPins(v)
			v.Compare(tt.log)
			ignore := cmpopts.IgnoreUnexported(Drift{})
			expect.NoDiffBut(t, cmp.Options{ignore, cmpopts.EquateApprox(1e-9, 0)}, v.Report(), []Drift{tt.want}, "report")
		})
	}
}
