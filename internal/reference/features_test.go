package reference

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// featuresFile describes the keys of a definition.
func featuresFile(t *testing.T, p *page) {
	p.text("A file of definitions has the key `features`, with a list of at most %d definitions, in at most %s. "+
		"`POST /v1/features/try` checks and evaluates definitions. [How to define a feature](../how-to/features.md).",
		feature.MaxDefinitions, settings.Bytes(feature.MaxFileBytes))
	p.text("The optional key `feature_sets` has at most %d lists, each with the names of at most %d of the features, under the name of the set: "+
		"[a-z][a-z0-9_]*, at most %d bytes. A request evaluates the features of the sets that it lists in `feature_sets`.",
		feature.MaxSets, feature.MaxFeatures, feature.MaxNameBytes)
	p.text("## Keys of a definition")
	var rows [][]string
	for _, k := range definitionKeys() {
		rows = append(rows, []string{code(k.name), sentence(k.help), k.kind, plain(k.standard), plain(k.bounds)})
	}
	p.table([]string{"Key", "Description", "Type", "Default", "Bounds"}, rows)
	p.text("## Aggregates")
	yes := map[bool]string{true: "yes"}
	rows = nil
	for _, a := range aggregates() {
		rows = append(rows, []string{
			code(string(a.name)), sentence(a.help), codes(a.entities()), a.of,
			yes[a.accepts("group_by: objectAttributes.board", "user")], yes[a.accepts("half_life: 1h")], yes[a.accepts("n: 3")],
		})
	}
	p.table([]string{"Aggregate", "Value", "Entities", "`of`", "`group_by`", "`half_life`", "`n`"}, rows)
	p.text("For a pin, only `verb` can be in `group_by`, and `where` is not available: a pin has counts by verb, its actors, and the mean of their embeddings.")
	p.text("## Groups")
	p.text("With `group_by`, a value is an object of numbers by group. With several paths, an action counts once in each combination of its values: " +
		"a save of a pin with two interests is in two groups of `[verb, objectAttributes.interests]`. An action without a value at one of the paths is in no group.")
	p.text("The name of a group is its value, or its values in the order of the paths, joined by `|`, such as `save|interest:tea`. " +
		"In the name of several values, `\\` precedes each `|` and `\\` of a value. The order of the paths changes only the names.")
	p.text("`n` keeps the groups with the most actions, ties by name in ascending order of bytes. In any case, at most `feature.max_groups` groups are counted: " +
		"those with the newest actions. If there are more, `missing` lists the feature with the reason `cap`.")
	p.text("A pair has the number of the pin's own group. It is an object of numbers if the pin can have several values at one of the paths.")
	p.text("Without any matching action, sum, count, rate and distinct are 0, groups are `{}`, and lists are `[]`. Every other value is null and listed in `missing`.")
	p.text("## Paths")
	p.text("`where`, `group_by` and `of` name a part of an action. `NAME` stands for the name of an attribute.")
	p.text("%s", codes(paths()))
}

// definitionKey describes a key of a definition in features.yaml.
type definitionKey struct {
	name, kind string
	bounds     string // "" without bounds
	standard   string // "required", or the value that is used without the key
	help       string
}

// definitionKeys describes the keys of a definition, in the order in which definitions are written.
func definitionKeys() []definitionKey {
	const partHelp = "name of a feature of the same entity and grouping whose value is a number"
	kept := settings.Short(feature.Kept)
	return []definitionKey{
		{"name", "text", fmt.Sprintf("[a-z][a-z0-9_]*, at most %d bytes", feature.MaxNameBytes), "required", "unique in the file"},
		{"description", "text", "", "empty", "for people"},
		{"entity", "text", "user, pin or pair", "required", "the subject of the feature; a pair is a user and a pin"},
		{"verbs", "text or list", fmt.Sprintf("at most %d", feature.MaxVerbs), "all; for a pin, all except impression", "verbs of the actions that count"},
		{"window", "duration", "above 0 to " + kept + ", whole milliseconds", kept, "actions in (as_of − window, as_of] count"},
		{"where", "map of path to text or list", fmt.Sprintf("at most %d paths, at most %d values each", feature.MaxConditions, feature.MaxValues), "none", "an action counts if it has one of the values at every path"},
		{"group_by", "path or list", fmt.Sprintf("at most %d paths", feature.MaxKeys), "none; required for a pair, except with cosine", "the value is computed for each value at the path, or each combination of values at the paths; each member of a list is one"},
		{"aggregate", "text", "see Aggregates", "required", "the function that turns the actions of the window into a value"},
		{"of", "path", "see Aggregates", "depends on the aggregate", "the values that the aggregate takes"},
		{"n", "int", fmt.Sprintf("1 to %d", feature.MaxN), fmt.Sprintf("%d for last, top and sequence; all groups", feature.DefaultN), fmt.Sprintf("number of values of last, top and sequence (at most %d); with group_by, the n groups with the most actions, ties by name; not for a pair", feature.MaxSequence)},
		{"half_life", "duration", settings.Short(feature.MinHalfLife) + " to " + settings.Short(feature.MaxHalfLife), "none: no decay", "age at which an action counts half"},
		{"columns", "path or list", fmt.Sprintf("at most %d paths, no lists", feature.MaxColumns), "[object, verb, verbAttributes.surface]", "only for sequence: the columns, next to the time of each action"},
		{"embedding", "text", "float32 or int8", "float32", "only for sequence: the type of the embeddings in columns; int8 has a scale for each embedding"},
		{"numerator", "text", "", "required for ratio", partHelp},
		{"denominator", "text", "", "required for ratio", partHelp},
	}
}

// The parser knows exactly the described keys, aggregates and paths.
func TestFeaturesFile_DescribesDefinitions(t *testing.T) {
	described := map[string]bool{}
	for _, k := range definitionKeys() {
		described[k.name] = true
		if _, err := feature.Parse("f", fmt.Appendf(nil, "features: [{%s: x}]", k.name)); err == nil || strings.Contains(err.Error(), "unknown key") {
			t.Errorf("key %s: %v", k.name, err)
		}
	}
	for i := range reflect.TypeFor[feature.Definition]().NumField() {
		field := reflect.TypeFor[feature.Definition]().Field(i).Name
		name := strings.ToLower(strings.Join(regexp.MustCompile("[A-Z][a-z]*").FindAllString(field, -1), "_"))
		expect.True(t, described[name] || name == "sets", "field %s: the key %s has a description", field, name)
	}
	for _, a := range aggregates() {
		expect.AtLeast(t, len(a.entities()), 1, "entities of aggregate %s", a.name)
	}
	_, err := feature.Parse("f", []byte("features: [{aggregate: unknown}]"))
	expect.Equal(t, strings.Count(err.Error(), ",")+2, len(aggregates()), "aggregates in %v", err)
	for _, path := range paths() {
		expect.Error(t, expect.ErrorOf(feature.ParsePath(path)), "", "path %s", path)
	}
}

// aggregate describes an aggregate.
type aggregate struct {
	name feature.Aggregate
	help string
	of   string // the paths that it takes; "" for none
}

func aggregates() []aggregate {
	const numbers, values = "an attribute with numbers, required", "any path but an embedding; default object, for a pin actor"
	return []aggregate{
		{feature.Count, "number of actions", ""},
		{feature.Rate, "actions per hour of the whole window", ""},
		{feature.Sum, "sum of the numbers at of", numbers},
		{feature.Mean, "mean of the numbers at of", numbers},
		{feature.Min, "minimum of the numbers at of", numbers},
		{feature.Max, "maximum of the numbers at of", numbers},
		{feature.CountDistinct, fmt.Sprintf("number of distinct values at of; exact up to %d, estimated above, and always estimated for a pin", feature.ExactDistinct), values},
		{feature.TakeLast, "the newest n actions", ""},
		{feature.TakeSequence, fmt.Sprintf("columns of the newest n actions that match, among the last %d actions of the user, without window", feature.MaxSequence), ""},
		{feature.TakeTop, "the n most frequent values at of", values},
		{feature.MeanEmbedding, "element-wise mean of the embeddings at of; for a pin, of its recent actors, without window", "an embedding; required, except for a pin"},
		{feature.Cosine, "cosine of the pin's embedding and the mean of the embeddings at of", "an embedding; default objectAttributes.embedding"},
		{feature.Ratio, "numerator divided by denominator", ""},
	}
}

// entities returns the entities of features with the aggregate.
func (a aggregate) entities() []string {
	return slices.DeleteFunc([]string{"user", "pin", "pair"}, func(entity string) bool { return !a.accepts("", entity) })
}

// accepts reports whether the parser accepts some definition with the aggregate and a further key, for one of the entities; none:
// all.
func (a aggregate) accepts(key string, entities ...string) bool {
	if len(entities) == 0 {
		entities = []string{"user", "pin", "pair"}
	}
	for _, entity := range entities {
		part, groups := "", []string{""}
		if entity == "pair" {
			part, groups = "group_by: object", []string{"", "group_by: object"}
		}
		for _, of := range []string{"", "of: objectAttributes.price", "of: objectAttributes.embedding", "numerator: part, denominator: part"} {
			for _, group := range groups {
				keys := slices.DeleteFunc([]string{of, group, key}, func(key string) bool { return key == "" })
				text := fmt.Sprintf("features:\n- {name: part, entity: %[1]s, aggregate: count, %[2]s}\n- {name: a, entity: %[1]s, aggregate: %[3]s, %[4]s}",
					entity, part, a.name, strings.Join(keys, ", "))
				if _, err := feature.Parse("f", []byte(text)); err == nil {
					return true
				}
			}
		}
	}
	return false
}

// paths are the paths that a definition may name.
func paths() []string {
	return []string{
		"verb", "object", "actor", "objectAttributes.author", "objectAttributes.board", "objectAttributes.interests", "objectAttributes.embedding",
		"objectAttributes.NAME", "actorAttributes.interests", "actorAttributes.embedding", "actorAttributes.NAME", "verbAttributes.board",
		"verbAttributes.surface", "verbAttributes.NAME",
	}
}
