package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Feature selects actions of a user, like a feature definition.
type Feature struct {
	Verbs  []schemas.Verb      // none: all verbs
	Window time.Duration       // actions in (asOf - Window, asOf], rounded down to milliseconds
	Where  map[string][]string // by attribute, the accepted values; one value of the action must be among them
}

// Matching returns the user's matching actions, newest first, ties by id descending.
func (p *Product) Matching(user schemas.UserID, f Feature, asOf schemas.Micros) []*schemas.EnrichedAction {
	end := millis(asOf)
	start := end - f.Window.Milliseconds()
	var matching []*schemas.EnrichedAction
	for _, a := range p.actions[user] {
		if at := millis(a.Timestamp); at > start && at <= end && f.matches(a) {
			matching = append(matching, a)
		}
	}
	return newestFirst(matching)
}

func (f Feature) matches(a *schemas.EnrichedAction) bool {
	if len(f.Verbs) > 0 && !slices.Contains(f.Verbs, a.Verb) {
		return false
	}
	for attribute, allowed := range f.Where {
		if !slices.ContainsFunc(Values(a, attribute), func(v string) bool { return slices.Contains(allowed, v) }) {
			return false
		}
	}
	return true
}

// Count returns the number of the user's matching actions.
func (p *Product) Count(user schemas.UserID, f Feature, asOf schemas.Micros) int {
	return len(p.Matching(user, f, asOf))
}

// CountBy returns the number of the user's matching actions by value of an attribute. Each member of a list counts once. An
// action without the attribute is in no group.
func (p *Product) CountBy(user schemas.UserID, f Feature, attribute string, asOf schemas.Micros) map[string]int {
	groups := map[string]int{}
	for _, a := range p.Matching(user, f, asOf) {
		for _, v := range Values(a, attribute) {
			groups[v]++
		}
	}
	return groups
}

// Last returns the newest n of the user's matching actions.
func (p *Product) Last(user schemas.UserID, f Feature, n int, asOf schemas.Micros) []*schemas.EnrichedAction {
	all := p.Matching(user, f, asOf)
	return all[:min(n, len(all))]
}

// MeanEmbedding returns the element-wise mean of the embeddings of the matching actions' pins, or nil if there are none. It
// ignores embeddings whose length differs from that of the newest one.
func (p *Product) MeanEmbedding(user schemas.UserID, f Feature, asOf schemas.Micros) []float64 {
	var sum []float64
	n := 0.0
	for _, a := range p.Matching(user, f, asOf) {
		vector := a.ObjectAttributes.Embedding
		if sum == nil && len(vector) > 0 {
			sum = make([]float64, len(vector))
		}
		if len(vector) == 0 || len(vector) != len(sum) {
			continue
		}
		for i, x := range vector {
			sum[i] += float64(x)
		}
		n++
	}
	for i := range sum {
		sum[i] /= n
	}
	return sum
}

// Values returns the values of an action's attribute: verb, object, actor, or a name below verbAttributes, objectAttributes
// or actorAttributes. It returns each member of a list once, and nil for an absent attribute.
func Values(a *schemas.EnrichedAction, attribute string) []string {
	switch object, verb, actor := a.ObjectAttributes, a.VerbAttributes, a.ActorAttributes; attribute {
	case "verb":
		return present(a.Verb)
	case "object":
		return present(a.Object)
	case "actor":
		return present(a.Actor)
	case "objectAttributes.author":
		return present(object.Author)
	case "objectAttributes.board":
		return present(object.Board)
	case "objectAttributes.interests":
		return present(object.Interests...)
	case "verbAttributes.board":
		return present(verb.Board)
	case "verbAttributes.surface":
		return present(verb.Surface)
	case "actorAttributes.interests":
		return present(actor.Interests...)
	}
	return named(a, attribute)
}

// named returns the value of a producer-defined attribute, which may be empty.
func named(a *schemas.EnrichedAction, attribute string) []string {
	side, name, _ := strings.Cut(attribute, ".")
	sides := map[string]map[string]string{
		"verbAttributes":   a.VerbAttributes.Attributes,
		"objectAttributes": a.ObjectAttributes.Attributes,
		"actorAttributes":  a.ActorAttributes.Attributes,
	}
	if value, ok := sides[side][name]; ok {
		return []string{value}
	}
	return nil
}

// present returns the non-empty values, each once, in ascending order.
func present[T ~string](values ...T) []string {
	var texts []string
	for _, v := range values {
		if v != "" {
			texts = append(texts, string(v))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// millis rounds a time down to milliseconds, also before 1970.
func millis(m schemas.Micros) int64 { return m.Time().UnixMilli() }

func newestFirst(actions []*schemas.EnrichedAction) []*schemas.EnrichedAction {
	slices.SortFunc(actions, func(a, b *schemas.EnrichedAction) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
	})
	return actions
}
