package actors

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestJoins_KeepNamedAttributes(t *testing.T) {
	all := schemas.EnrichedAction{
		ID: "e", Actor: "user:1", Verb: "view", Object: "pin:1",
		ActorAttributes: schemas.ActorAttributes{
			Interests: []schemas.InterestID{"interest:a"}, Embedding: []float32{1}, Attributes: map[string]string{"age": "7", "embedding": "text"},
		},
		VerbAttributes: schemas.VerbAttributes{Board: "board:v", Surface: "home", Attributes: map[string]string{"device": "ios"}},
		ObjectAttributes: schemas.ObjectAttributes{
			Facets:    schemas.Facets{Author: "user:2", Board: "board:o", Interests: []schemas.InterestID{"interest:o"}},
			Embedding: []float32{2}, Attributes: map[string]string{"price": "3", "color": "red"},
		},
	}
	bare := schemas.EnrichedAction{ID: "e", Actor: "user:1", Verb: "view", Object: "pin:1"}
	with := func(change func(*schemas.EnrichedAction)) schemas.EnrichedAction {
		a := bare
		change(&a)
		return a
	}
	tests := map[string]struct {
		joins Joins
		want  schemas.EnrichedAction
	}{
		"no rules":               {nil, all},
		"a rule for other verbs": {Joins{"save": {Object: []string{}}}, all},
		"a rule without a list":  {Joins{"view": {}}, all},
		"no attributes":          {Joins{"view": {Object: []string{}, Actor: []string{}, Verb: []string{}}}, bare},
		"object attributes": {Joins{"view": {Object: []string{"author", "price", "absent"}, Actor: []string{}, Verb: []string{}}},
			with(func(a *schemas.EnrichedAction) {
				a.ObjectAttributes.Author, a.ObjectAttributes.Attributes = "user:2", map[string]string{"price": "3"}
			})},
		"actor attributes": {Joins{"view": {Object: []string{}, Actor: []string{"embedding"}, Verb: []string{}}},
			with(func(a *schemas.EnrichedAction) {
				a.ActorAttributes.Embedding, a.ActorAttributes.Attributes = []float32{1}, map[string]string{"embedding": "text"}
			})},
		"verb attributes": {Joins{"view": {Object: []string{}, Actor: []string{}, Verb: []string{"board", "surface", "device"}}},
			with(func(a *schemas.EnrichedAction) { a.VerbAttributes = all.VerbAttributes })},
	}
	for name, tt := range tests {
		expect.NoDiffBut(t, cmpopts.EquateEmpty(), tt.joins.apply(all), tt.want, "%s", name)
	}
	expect.Equal(t, len(all.ObjectAttributes.Attributes), 2, "attributes of the argument of apply")
}

func TestConfig_Validate(t *testing.T) {
	cfg := DefaultConfig()
	must.OK(t, cfg.Validate())
	cfg.Verbs = schemas.Verbs{"x": math.Inf(1)}
	cfg.JoinedAttributes = Joins{"view": {Object: []string{""}}, "save": {Verb: make([]string, maxJoinNames+1)}}
	cfg.EmbeddingVerbs = []schemas.Verb{"nod"}
	err := cfg.Validate()
	for _, want := range []string{
		`verb "x"`, "joined_attributes.view: empty name", "joined_attributes.save: 257 names: want at most 256",
		`embedding_verbs: "nod": want a known verb`,
	} {
		expect.Error(t, err, want, "error")
	}
}
