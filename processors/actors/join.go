package actors

import (
	"fmt"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Joins lists the attributes that are joined to actions, by verb. Actions of other verbs keep all attributes. Omitted
// attributes are missing in actions-enriched and therefore in all features. Affinities are computed from all attributes.
type Joins map[schemas.Verb]Join

// Join names the attributes to keep, as feature paths name them: author, board, interests and embedding of the object;
// interests and embedding of the actor; board and surface of the verb. Any other name is a key of the attributes. A nil
// list keeps all attributes. An empty list keeps none.
type Join struct {
	Object []string `yaml:"object" help:"names of the pin's attributes, at most 256; missing: all"`
	Actor  []string `yaml:"actor" help:"names of the user's attributes, at most 256; missing: all"`
	Verb   []string `yaml:"verb" help:"names of the action's attributes, at most 256; missing: all"`
}

// Limits of Joins.
const (
	maxJoins     = 64
	maxJoinNames = 256 // per list
)

func (j Joins) validate(name string) error {
	if len(j) > maxJoins {
		return fmt.Errorf("%s: %d verbs: want at most %d", name, len(j), maxJoins)
	}
	var p settings.Problems
	for _, verb := range slices.Sorted(maps.Keys(j)) {
		for _, list := range [][]string{j[verb].Object, j[verb].Actor, j[verb].Verb} {
			p.Want(len(list) <= maxJoinNames, "%s.%s: %d names: want at most %d", name, verb, len(list), maxJoinNames)
			p.Want(!slices.Contains(list, ""), "%s.%s: empty name", name, verb)
		}
	}
	return p.Err()
}

// apply returns the action with the attributes that its verb keeps.
func (j Joins) apply(a schemas.EnrichedAction) schemas.EnrichedAction {
	rule, ok := j[a.Verb]
	if !ok {
		return a
	}
	if rule.Object != nil {
		o := &a.ObjectAttributes
		keep(&o.Author, rule.Object, "author")
		keep(&o.Board, rule.Object, "board")
		keep(&o.Interests, rule.Object, "interests")
		keep(&o.Embedding, rule.Object, "embedding")
		o.Attributes = only(o.Attributes, rule.Object)
	}
	if rule.Actor != nil {
		keep(&a.ActorAttributes.Interests, rule.Actor, "interests")
		keep(&a.ActorAttributes.Embedding, rule.Actor, "embedding")
		a.ActorAttributes.Attributes = only(a.ActorAttributes.Attributes, rule.Actor)
	}
	if rule.Verb != nil {
		keep(&a.VerbAttributes.Board, rule.Verb, "board")
		keep(&a.VerbAttributes.Surface, rule.Verb, "surface")
		a.VerbAttributes.Attributes = only(a.VerbAttributes.Attributes, rule.Verb)
	}
	return a
}

// keep clears a field whose name is not in names.
func keep[T any](field *T, names []string, name string) {
	if !slices.Contains(names, name) {
		*field = *new(T)
	}
}

// only returns the named attributes. It does not modify attributes, which is shared.
func only(attributes map[string]string, names []string) map[string]string {
	kept := map[string]string{}
	for _, name := range names {
		if value, ok := attributes[name]; ok {
			kept[name] = value
		}
	}
	return kept
}
