package featurelog_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/featurelog"
)

// A model received a count of one save in the last hour. The log of actions has two, of which the second arrived just
// after the answer. So the second save was late, and the answer was not wrong.
func ExampleVerifier() {
	saves, err := feature.Parse("features.yaml", []byte(`
features:
- {name: saves_1h, entity: user, verbs: save, aggregate: count, window: 1h}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	const second, answered = schemas.Micros(1e6), schemas.Micros(7200e6)
	save := func(id string, at, arrived schemas.Micros) featurelog.Arrived {
		return featurelog.Arrived{At: arrived, EnrichedAction: schemas.EnrichedAction{
			ID: id, Actor: "user:ada", Verb: schemas.Save, Object: "pin:tea", Timestamp: at,
		}}
	}
	one := 1.0
	logged := &schemas.LoggedFeatures{
		Entity: "user:ada", User: "user:ada", AsOf: answered, Logged: answered,
		Values: []schemas.FeatureValue{{Feature: "saves_1h", Number: &one}},
	}
	v := featurelog.NewVerifier(saves)
	v.Expect(logged)
	v.Add(save("e-1", answered-60*second, answered-59*second))
	v.Add(save("e-2", answered-2*second, answered-1*second))
	v.Compare(logged)
	for _, drift := range v.Report() {
		fmt.Printf("%s: %d compared, %d late, %d bad\n", drift.Feature, drift.Compared, drift.Late, drift.Bad())
	}
	// Output: saves_1h: 1 compared, 1 late, 0 bad
}
