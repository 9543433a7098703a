package feature_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// A definition, and its value for three actions.
func ExampleReference() {
	definitions, err := feature.Parse("features.yaml", []byte(`
features:
  - name: saves_24h
    entity: user
    verbs: [save]
    window: 24h
    group_by: objectAttributes.author
    aggregate: count
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := schemas.MicrosOf(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	action := func(id string, verb schemas.Verb, ago time.Duration) schemas.EnrichedAction {
		return schemas.EnrichedAction{
			ID: id, Actor: "user:ada", Verb: verb, Object: "pin:42", Timestamp: now - schemas.Micros(ago.Microseconds()),
			ObjectAttributes: schemas.ObjectAttributes{Facets: schemas.Facets{Author: "user:bob"}},
		}
	}
	got := feature.Reference(definitions[0], feature.Span{AsOf: now, Now: now}, []schemas.EnrichedAction{
		action("e-1", schemas.Save, time.Hour), action("e-2", schemas.Click, time.Hour), action("e-3", schemas.Save, 25*time.Hour),
	})
	fmt.Println(got.Value)
	// Output: map[user:bob:1]
}
