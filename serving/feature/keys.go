package feature

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Key describes a key of a definition in features.yaml.
type Key struct {
	Name    string
	Type    string
	Bounds  string // "" without bounds
	Default string // "required", or the value that is used without the key
	Help    string
}

// Keys returns the keys of a definition, in the order in which definitions are written.
func Keys() []Key {
	var all []Key
	for _, k := range definitionKeys() {
		all = append(all, k.Key)
	}
	return all
}

// definitionKey is a key with the function that reads its value into a definition.
type definitionKey struct {
	Key
	read func(p *parser, d *Definition, v *yaml.Node)
}

// definitionKeys is the table of the keys of a definition.
func definitionKeys() []definitionKey {
	const partHelp = "name of a feature of the same entity and grouping whose value is a number"
	return []definitionKey{
		{Key{"name", "text", fmt.Sprintf("[a-z][a-z0-9_]*, at most %d bytes", MaxNameBytes), "required", "unique in the file"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Name = scalar(p, v, "name", parseName) }},
		{Key{"description", "text", "", "empty", "for people"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Description = p.text(v, "description") }},
		{Key{"entity", "text", "user, pin or pair", "required", "the subject of the feature; a pair is a user and a pin"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Entity = scalar(p, v, "entity", parseEntity) }},
		{Key{"verbs", "text or list", fmt.Sprintf("at most %d", MaxVerbs), "all; for a pin, all except impression", "verbs of the actions that count"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Verbs = p.verbs(v) }},
		{Key{"window", "duration", "above 0 to " + settings.Short(Kept) + ", whole milliseconds", settings.Short(Kept), "actions in (as_of − window, as_of] count"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Window = scalar(p, v, "window", parseWindow) }},
		{Key{"where", "map of path to text or list", fmt.Sprintf("at most %d paths, at most %d values each", MaxConditions, MaxValues), "none", "an action counts if it has one of the values at every path"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Where = p.where(v) }},
		{Key{"group_by", "path or list", fmt.Sprintf("at most %d paths", MaxKeys), "none; required for a pair, except with cosine", "the value is computed for each value at the path, or each combination of values at the paths; each member of a list is one"},
			func(p *parser, d *Definition, v *yaml.Node) {
				d.GroupBy = parseList(p, v, "group_by", MaxKeys, ParsePath)
			}},
		{Key{"aggregate", "text", "see Aggregates", "required", "the function that turns the actions of the window into a value"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Aggregate = scalar(p, v, "aggregate", parseAggregate) }},
		{Key{"of", "path", "see Aggregates", "depends on the aggregate", "the values that the aggregate takes"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Of = scalar(p, v, "of", ParsePath) }},
		{Key{"n", "int", fmt.Sprintf("1 to %d", MaxN), fmt.Sprintf("%d for last, top and sequence; all groups", DefaultN), fmt.Sprintf("number of values of last, top and sequence (at most %d); with group_by, the n groups with the most actions, ties by name; not for a pair", MaxSequence)},
			func(p *parser, d *Definition, v *yaml.Node) { d.N = scalar(p, v, "n", parseN) }},
		{Key{"half_life", "duration", settings.Short(MinHalfLife) + " to " + settings.Short(MaxHalfLife), "none: no decay", "age at which an action counts half"},
			func(p *parser, d *Definition, v *yaml.Node) { d.HalfLife = scalar(p, v, "half_life", parseHalfLife) }},
		{Key{"lookup", "bool", "", "false", "take the current embeddings of the pins instead of those stored with the actions; of must be objectAttributes.embedding, and entity user or pair"},
			func(p *parser, d *Definition, v *yaml.Node) { d.Lookup = scalar(p, v, "lookup", parseFlag) }},
		{Key{"columns", "path or list", fmt.Sprintf("at most %d paths, no lists", MaxColumns), "[object, verb, verbAttributes.surface]", "only for sequence: the columns, next to the time of each action"},
			func(p *parser, d *Definition, v *yaml.Node) {
				d.Columns = parseList(p, v, "columns", MaxColumns, ParsePath)
			}},
		{Key{"embedding", "text", "float32 or int8", "float32", "only for sequence: the type of the embeddings in columns; int8 has a scale for each embedding"},
			func(p *parser, d *Definition, v *yaml.Node) {
				d.Embedding = scalar(p, v, "embedding", parseEmbedding)
			}},
		{Key{"numerator", "text", "", "required for ratio", partHelp},
			func(p *parser, d *Definition, v *yaml.Node) { d.Numerator = &Definition{Name: p.text(v, "numerator")} }}, // resolved by ratio
		{Key{"denominator", "text", "", "required for ratio", partHelp},
			func(p *parser, d *Definition, v *yaml.Node) {
				d.Denominator = &Definition{Name: p.text(v, "denominator")}
			}},
	}
}

// AggregateInfo says what an aggregate computes, and which keys of a definition it accepts.
type AggregateInfo struct {
	Aggregate            Aggregate
	Help                 string
	Entities             []Entity
	Of                   string // the paths that it takes; "" for none
	GroupBy, HalfLife, N bool   // accepts the key
}

// Aggregates returns what each aggregate computes and accepts.
func Aggregates() []AggregateInfo {
	paths := map[takes]string{
		numbersAt: "an attribute with numbers, required", valuesAt: "any path but an embedding; default object, for a pin actor", vectorsAt: "an embedding; required, except for a pin",
	}
	all := []AggregateInfo{
		{Aggregate: Count, Help: "number of actions"},
		{Aggregate: Rate, Help: "actions per hour of the whole window"},
		{Aggregate: Sum, Help: "sum of the numbers at of"},
		{Aggregate: Mean, Help: "mean of the numbers at of"},
		{Aggregate: Min, Help: "minimum of the numbers at of"},
		{Aggregate: Max, Help: "maximum of the numbers at of"},
		{Aggregate: CountDistinct, Help: fmt.Sprintf("number of distinct values at of; exact up to %d, estimated above, and always estimated for a pin", ExactDistinct)},
		{Aggregate: TakeLast, Help: "the newest n actions"},
		{Aggregate: TakeSequence, Help: fmt.Sprintf("columns of the newest n actions that match, among the last %d actions of the user, without window", MaxSequence)},
		{Aggregate: TakeTop, Help: "the n most frequent values at of"},
		{Aggregate: MeanEmbedding, Help: "element-wise mean of the embeddings at of; for a pin, of its recent actors, without window"},
		{Aggregate: Cosine, Help: "cosine of the pin's embedding and the mean of the embeddings at of"},
		{Aggregate: Ratio, Help: "numerator divided by denominator"},
	}
	for i := range all {
		a := &all[i]
		r, _ := a.Aggregate.rule()
		a.Of, a.GroupBy, a.HalfLife, a.N = paths[r.of], r.grouped, r.decays, r.n
		if a.Aggregate == Cosine {
			a.Of = "an embedding; default objectAttributes.embedding"
		} else {
			a.Entities = append(a.Entities, User)
		}
		switch a.Aggregate {
		case Count, Rate, CountDistinct, MeanEmbedding, Ratio: // as in combination.ofPin
			a.Entities = append(a.Entities, Pin)
		}
		if r.grouped || a.Aggregate == Cosine || a.Aggregate == Ratio {
			a.Entities = append(a.Entities, Pair)
		}
	}
	return all
}

// PathNames returns the paths that a definition may name. NAME stands for the name of an attribute.
func PathNames() []string {
	var names []string
	for p := noPart + 1; p < numParts; p++ {
		name := Path{part: p}
		if name.isFree() {
			name.key = "NAME"
		}
		names = append(names, name.String())
	}
	return names
}
