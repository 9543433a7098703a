package featurelog

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

const second = schemas.Micros(1e6)

const at = 1_700_000_000 * second

func definitions(t *testing.T) []feature.Definition {
	t.Helper()
	defs, err := feature.Parse("f", []byte(`
features:
- {name: saves, entity: user, verbs: save, aggregate: count, window: 1h}
- {name: pins, entity: user, aggregate: count, window: 1h, group_by: object}
- {name: last, entity: user, aggregate: last, n: 2}
- {name: mean, entity: user, aggregate: mean, of: objectAttributes.price}
- {name: now, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding, lookup: true}
- {name: pin_saves, entity: pin, verbs: save, aggregate: count, window: 1h}
- {name: pin_actors, entity: pin, aggregate: distinct, window: 1h}
- {name: shown, entity: pin, verbs: impression, aggregate: count}
`))
	must(t, err)
	return defs
}

// saved are saves of user:1, one a second up to at, each arriving at once.
func saved(n int) []Arrived {
	var all []Arrived
	for i := range n {
		a := Arrived{At: at - schemas.Micros(i)*second}
		a.EnrichedAction = schemas.EnrichedAction{ID: fmt.Sprint(i), Actor: "user:1", Verb: "save", Object: "pin:1", Timestamp: a.At}
		all = append(all, a)
	}
	return all
}

func number(x float64) *float64 { return &x }

func TestVerifierTellsDriftsApart(t *testing.T) {
	record := func(values ...schemas.FeatureValue) *schemas.LoggedFeatures {
		return &schemas.LoggedFeatures{Entity: "user:1", User: "user:1", AsOf: at, Logged: at, Values: values}
	}
	pin := func(values ...schemas.FeatureValue) *schemas.LoggedFeatures {
		return &schemas.LoggedFeatures{Entity: "pin:1", Pin: "pin:1", AsOf: at, Logged: at, Values: values}
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
		"on their way": {record(schemas.FeatureValue{Feature: "saves", Number: number(17)}), nil, Drift{Feature: "saves", Compared: 1, Late: 1, SMAPE: 6.0 / 37}},
		"too long":     {record(schemas.FeatureValue{Feature: "saves", Number: number(5)}), nil, Drift{Feature: "saves", Compared: 1, Mismatched: 1, SMAPE: 30.0 / 25}},
		"groups":       {record(schemas.FeatureValue{Feature: "pins", Groups: map[string]float64{"pin:1": 20}}), nil, Drift{Feature: "pins", Compared: 1, Equal: 1}},
		"other groups": {record(schemas.FeatureValue{Feature: "pins", Groups: map[string]float64{"pin:2": 20}}), nil, Drift{Feature: "pins", Compared: 1, Mismatched: 1, SMAPE: 2}},
		"null":         {record(schemas.FeatureValue{Feature: "mean", Reasons: []string{"empty"}}), nil, Drift{Feature: "mean", Compared: 1, Equal: 1}},
		"not null":     {record(schemas.FeatureValue{Feature: "mean", Number: number(3)}), nil, Drift{Feature: "mean", Compared: 1, Missing: 1, SMAPE: 2}},
		"last": {record(schemas.FeatureValue{Feature: "last", Last: []schemas.LoggedAction{
			{Object: "pin:1", Verb: "save", Time: at}, {Object: "pin:1", Verb: "save", Time: at - second}}}), nil, Drift{Feature: "last", Compared: 1, Equal: 1}},
		"not in time": {record(schemas.FeatureValue{Feature: "saves", Reasons: []string{"deadline"}}), nil, Drift{Feature: "saves", Skipped: 1}},
		"by key":      {record(schemas.FeatureValue{Feature: "now", Reasons: []string{"empty"}}), nil, Drift{Feature: "now", Skipped: 1}},
		"unknown":     {record(schemas.FeatureValue{Feature: "gone", Number: number(1)}), nil, Drift{Feature: "gone", Skipped: 1}},
		"of a pin":    {pin(schemas.FeatureValue{Feature: "pin_saves", Number: number(20)}), nil, Drift{Feature: "pin_saves", Compared: 1, Equal: 1}},
		"who acted":   {pin(schemas.FeatureValue{Feature: "pin_actors", Number: number(1)}), nil, Drift{Feature: "pin_actors", Compared: 1, Equal: 1}},
		"impressions": {pin(schemas.FeatureValue{Feature: "shown", Number: number(1)}), nil, Drift{Feature: "shown", Skipped: 1}},
		"somebody else": {&schemas.LoggedFeatures{User: "user:2", Values: []schemas.FeatureValue{{Feature: "saves", Number: number(0)}}}, nil,
			Drift{Feature: "saves", Compared: 1, Equal: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := NewVerifier(definitions(t))
			v.Expect(tt.log)
			for _, a := range append(saved(20), tt.more...) {
				v.Add(a)
			}
			v.Compare(tt.log)
			ignore := cmpopts.IgnoreUnexported(Drift{})
			if diff := cmp.Diff([]Drift{tt.want}, v.Report(), ignore, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
