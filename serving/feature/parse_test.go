package feature

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// comparePaths lets cmp compare paths, which are comparable values.
var comparePaths = cmp.Comparer(func(a, b Path) bool { return a == b })

func mustPath(t testing.TB, s string) Path {
	t.Helper()
	return must.Get(ParsePath(s))(t)
}

// define parses one definition, given as the lines after its name.
func define(t testing.TB, lines ...string) Definition {
	t.Helper()
	defs := must.Get(Parse("test", []byte("features:\n  - name: f\n    "+strings.Join(lines, "\n    "))))(t)
	return defs[0]
}

func TestParse_ReadsEveryKey(t *testing.T) {
	got := must.Get(Parse("features.yaml", []byte(`
features:
  - name: interests_24h            # [a-z][a-z0-9_]*, unique
    description: by interest
    entity: user
    verbs: [click, save]
    window: 24h
    where: {verbAttributes.device: [ios, android], objectAttributes.price: 3}
    group_by: objectAttributes.interests
    aggregate: sum
    of: objectAttributes.price
  - {name: last_one, entity: user, aggregate: last, n: 1}
  - {name: top_default, entity: user, aggregate: top, window: 90s}
  - {name: vector, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding, window: 2m}
  - {name: pin_rate, entity: pin, aggregate: rate, verbs: save, window: 1h, group_by: verb}
  - {name: pair_author, entity: pair, aggregate: count, group_by: objectAttributes.author}
  - {name: decayed, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding, half_life: 90m}
  - {name: share, entity: pin, aggregate: ratio, numerator: pin_rate, denominator: pin_rate}
  - {name: actors, entity: pin, aggregate: distinct, window: 1h}
  - {name: crowd, entity: pin, aggregate: mean_embedding}
  - {name: close, entity: pair, aggregate: cosine}
  - {name: combined, entity: user, aggregate: count, group_by: [verb, objectAttributes.interests, actor], n: 5}
  - {name: listed, entity: pair, aggregate: count, group_by: [object]}
  - {name: sequence, entity: user, aggregate: sequence, n: 512, verbs: save, columns: [verb, actorAttributes.embedding], embedding: int8}
  - {name: vectors, entity: user, aggregate: sequence, columns: objectAttributes.embedding}
  - {name: plain, entity: user, aggregate: sequence}
`)))(t)
	want := []Definition{
		{
			Name: "interests_24h", Description: "by interest", Entity: User, Verbs: []schemas.Verb{"click", "save"},
			Window: 24 * time.Hour, GroupBy: Grouping{mustPath(t, "objectAttributes.interests")}, Aggregate: Sum,
			Of: mustPath(t, "objectAttributes.price"),
			Where: []Condition{
				{Path: mustPath(t, "verbAttributes.device"), In: []string{"ios", "android"}},
				{Path: mustPath(t, "objectAttributes.price"), In: []string{"3"}},
			},
		},
		{Name: "last_one", Entity: User, Window: Kept, Aggregate: TakeLast, N: 1},
		{Name: "top_default", Entity: User, Window: 90 * time.Second, Aggregate: TakeTop, Of: mustPath(t, "object"), N: DefaultN},
		{Name: "vector", Entity: User, Window: 2 * time.Minute, Aggregate: MeanEmbedding, Of: mustPath(t, "objectAttributes.embedding")},
		{Name: "pin_rate", Entity: Pin, Verbs: []schemas.Verb{"save"}, Window: time.Hour, Aggregate: Rate, GroupBy: Grouping{mustPath(t, "verb")}},
		{Name: "pair_author", Entity: Pair, Window: Kept, Aggregate: Count, GroupBy: Grouping{mustPath(t, "objectAttributes.author")}},
		{
			Name: "decayed", Entity: User, Window: Kept, Aggregate: MeanEmbedding, Of: mustPath(t, "objectAttributes.embedding"),
			HalfLife: 90 * time.Minute,
		},
		{Name: "share", Entity: Pin, Aggregate: Ratio, GroupBy: Grouping{mustPath(t, "verb")}, Numerator: &got[4], Denominator: &got[4]},
		{Name: "actors", Entity: Pin, Window: time.Hour, Aggregate: CountDistinct, Of: mustPath(t, "actor")},
		{Name: "crowd", Entity: Pin, Aggregate: MeanEmbedding, Of: mustPath(t, "actorAttributes.embedding")},
		{Name: "close", Entity: Pair, Window: Kept, Aggregate: Cosine, Of: mustPath(t, "objectAttributes.embedding")},
		{
			Name: "combined", Entity: User, Window: Kept, Aggregate: Count, N: 5,
			GroupBy: Grouping{mustPath(t, "verb"), mustPath(t, "objectAttributes.interests"), mustPath(t, "actor")},
		},
		{Name: "listed", Entity: Pair, Window: Kept, Aggregate: Count, GroupBy: Grouping{mustPath(t, "object")}},
		{
			Name: "sequence", Entity: User, Verbs: []schemas.Verb{"save"}, Aggregate: TakeSequence, N: 512,
			Columns: []Path{mustPath(t, "verb"), mustPath(t, "actorAttributes.embedding")}, Embedding: Int8,
		},
		{Name: "vectors", Entity: User, Aggregate: TakeSequence, N: DefaultN, Columns: []Path{mustPath(t, "objectAttributes.embedding")}, Embedding: Float32},
		{
			Name: "plain", Entity: User, Aggregate: TakeSequence, N: DefaultN,
			Columns: []Path{mustPath(t, "object"), mustPath(t, "verb"), mustPath(t, "verbAttributes.surface")},
		},
	}
	same(t, "definitions", want, got, comparePaths)
}

func TestParse_ReportsEveryMistakeWithItsLine(t *testing.T) {
	const valid = "entity: user, aggregate: count"
	manySets := strings.Repeat("s: a, ", MaxSets+1)
	tests := map[string]struct {
		text string
		want []string // parts of the messages, in order
	}{
		"empty file":      {"", []string{"f:1: no features"}},
		"no list":         {"features: 3", []string{"f:1: features: want a list"}},
		"unknown top key": {"features: []\nfeeds: []", []string{`f:2: unknown key "feeds"`}},
		"sets are a list": {"features: []\nfeature_sets: [a]", []string{"f:2: feature_sets: want keys with values"}},
		"set of unknowns": {
			"features: [{name: a, " + valid + "}]\nfeature_sets:\n  s: [a, b]\n  S: a\n  t: [a, a]\n  u: []\n  s: a",
			[]string{
				`f:3: feature_sets s "b": no such feature in this file`, `f:4: feature_sets "S": want [a-z]`, `f:5: feature_sets t: "a" twice`,
				"f:6: feature_sets u: no features", `f:7: feature_sets: the key "s" twice`,
			},
		},
		"many sets":          {"features: []\nfeature_sets: {" + manySets + "}", []string{"f:2: feature_sets: 101 sets: at most 100"}},
		"syntax":             {"features:\n  - {", []string{"f:2: did not find expected node content"}},
		"two documents":      {"features: []\n---\nfeatures: []", []string{"f:1: more than one document"}},
		"not a mapping":      {"features: [7]", []string{"f:1: a feature: want keys with values"}},
		"no keys":            {"features:\n- {}", []string{"f:2: no name", "f:2: no entity", "f:2: no aggregate"}},
		"bad name":           {"features: [{name: A, " + valid + "}]", []string{`feature A: name "A": want [a-z]`}},
		"long name":          {"features: [{name: " + strings.Repeat("a", 65) + ", " + valid + "}]", []string{"at most 64 bytes"}},
		"name twice":         {"features:\n- {name: a, " + valid + "}\n- {name: a, " + valid + "}", []string{"f:3: feature a: name: already the name of the feature in line 2"}},
		"key twice":          {"features:\n- name: a\n  name: b\n  entity: user\n  aggregate: count", []string{`f:3: feature a: a feature: the key "name" twice`}},
		"unknown key":        {"features:\n- name: a\n  entity: user\n  agregate: count", []string{`f:4: feature a: unknown key "agregate"`}},
		"unknown entity":     {"features: [{name: a, entity: board, aggregate: count}]", []string{`entity "board": want user, pin or pair`}},
		"bad aggregate":      {"features: [{name: a, entity: user, aggregate: median}]", []string{`aggregate "median": want count`}},
		"no duration":        {"features: [{name: a, " + valid + ", window: 24}]", []string{`window "24": want a duration`}},
		"days":               {"features: [{name: a, " + valid + ", window: 1d}]", []string{`window "1d": want a duration`}},
		"window too long":    {"features: [{name: a, " + valid + ", window: 96h1ms}]", []string{"want more than 0 and at most 96h"}},
		"no window at all":   {"features: [{name: a, " + valid + ", window: 0s}]", []string{`window "0s": want more than 0`}},
		"microseconds":       {"features: [{name: a, " + valid + ", window: 1500us}]", []string{`window "1500us": want a whole number of milliseconds`}},
		"null verb":          {"features: [{name: a, " + valid + ", verbs: [null]}]", []string{"verbs: want a text", "an empty verb"}},
		"verb twice":         {"features: [{name: a, " + valid + ", verbs: [save, save]}]", []string{`verbs: "save" twice`}},
		"where a list":       {"features: [{name: a, " + valid + ", where: [x]}]", []string{"where: want keys with values"}},
		"where no path":      {"features: [{name: a, " + valid + ", where: {device: ios}}]", []string{`where "device": want verb, object, actor`}},
		"where no values":    {"features: [{name: a, " + valid + ", where: {verb: []}}]", []string{"where verb: no values"}},
		"where a vector":     {"features: [{name: a, " + valid + ", where: {objectAttributes.embedding: 1}}]", []string{"an embedding has no values to compare"}},
		"path of a map":      {"features: [{name: a, " + valid + ", group_by: objectAttributes}]", []string{`group_by "objectAttributes": want`}},
		"empty below map":    {"features: [{name: a, " + valid + ", group_by: objectAttributes.}]", []string{`group_by "objectAttributes.": want`}},
		"group a vector":     {"features: [{name: a, " + valid + ", group_by: actorAttributes.embedding}]", []string{"an embedding has no values to group by"}},
		"path twice":         {"features: [{name: a, " + valid + ", group_by: [verb, object, verb]}]", []string{`group_by: "verb" twice`}},
		"four keys":          {"features: [{name: a, " + valid + ", group_by: [verb, object, actor, verbAttributes.x]}]", []string{"group_by: 4 values: at most 3"}},
		"two bad paths":      {"features: [{name: a, " + valid + ", group_by: [x, y]}]", []string{`group_by "x": want`, `group_by "y": want`}},
		"group verb, vector": {"features: [{name: a, " + valid + ", group_by: [verb, objectAttributes.embedding]}]", []string{`group_by "objectAttributes.embedding": an embedding`}},
		"of of count":        {"features: [{name: a, " + valid + ", of: object}]", []string{"of: count is taken of actions: want none"}},
		"n of count":         {"features: [{name: a, " + valid + ", n: 3}]", []string{"n: count has no length"}},
		"n too large":        {"features: [{name: a, entity: user, aggregate: last, n: 1001}]", []string{`n "1001": want a whole number from 1 to 1000`}},
		"n zero":             {"features: [{name: a, entity: user, aggregate: last, n: 0}]", []string{`n "0": want`}},
		"sum of nothing":     {"features: [{name: a, entity: user, aggregate: sum}]", []string{`of "": sum is taken of numbers`}},
		"sum of ids":         {"features: [{name: a, entity: user, aggregate: max, of: object}]", []string{`of "object": max is taken of numbers`}},
		"distinct vectors":   {"features: [{name: a, entity: user, aggregate: distinct, of: objectAttributes.embedding}]", []string{"an embedding has no values to count"}},
		"mean of text":       {"features: [{name: a, entity: user, aggregate: mean_embedding, of: verb}]", []string{"want objectAttributes.embedding or"}},
		"last by group":      {"features: [{name: a, entity: user, aggregate: last, group_by: verb}]", []string{"group_by: last is not taken by group"}},
		"pin mean":           {"features: [{name: a, entity: pin, aggregate: mean, of: objectAttributes.x}]", []string{"aggregate mean: a pin has counts by verb and time, its actors, and"}},
		"pin where":          {"features:\n- name: a\n  entity: pin\n  aggregate: count\n  where: {verb: save}", []string{"f:5: feature a: where: a pin has counts"}},
		"pin by author":      {"features: [{name: a, entity: pin, aggregate: rate, group_by: objectAttributes.author}]", []string{"want verb or none"}},
		"pin by two keys":    {"features: [{name: a, entity: pin, aggregate: rate, group_by: [verb, object]}]", []string{`group_by "object": a pin has`}},
		"pair by a user's":   {"features: [{name: a, entity: pair, aggregate: count, group_by: [object, verb]}]", []string{`group_by "verb": a pair has`}},
		"n of a pair":        {"features: [{name: a, entity: pair, aggregate: count, group_by: object, n: 3}]", []string{"n: count has no length"}},
		"pair no group":      {"features: [{name: a, entity: pair, aggregate: count}]", []string{`group_by "": a pair has the user's value`}},
		"pair by verb":       {"features: [{name: a, entity: pair, aggregate: count, group_by: verb}]", []string{`group_by "verb": a pair has`}},
		"pair of last":       {"features: [{name: a, entity: pair, aggregate: last, group_by: object}]", []string{"last is not taken by group"}},
		"pin vector of time": {"features: [{name: a, entity: pin, aggregate: mean_embedding, window: 1h}]", []string{"window: the mean of a pin's recent actors is kept as one vector"}},
		"pin distinct pins":  {"features: [{name: a, entity: pin, aggregate: distinct, of: object}]", []string{`of "object": of a pin it is actor`}},
		"pin actors by verb": {"features: [{name: a, entity: pin, aggregate: distinct, verbs: save}]", []string{"verbs: a pin has counts"}},
		"short half-life":    {"features: [{name: a, " + valid + ", half_life: 59s}]", []string{`half_life "59s": want 1m to 9600h`}},
		"no half-life":       {"features: [{name: a, " + valid + ", half_life: soon}]", []string{`half_life "soon": want a duration`}},
		"decaying rate":      {"features: [{name: a, entity: user, aggregate: rate, half_life: 1h}]", []string{"half_life: rate does not decay"}},
		"cosine of a user":   {"features: [{name: a, entity: user, aggregate: cosine}]", []string{"aggregate cosine: compares a pin with a user: want entity pair"}},
		"cosine of a text":   {"features: [{name: a, entity: pair, aggregate: cosine, of: verb}]", []string{`of "verb": want objectAttributes.embedding`}},
		"cosine by group":    {"features: [{name: a, entity: pair, aggregate: cosine, group_by: object}]", []string{"group_by: cosine is not taken by group"}},
		"ratio of nothing":   {"features: [{name: a, entity: user, aggregate: ratio}]", []string{"no numerator: want the name", "no denominator: want the name"}},
		"ratio with a window": {
			"features:\n- {name: c, " + valid + "}\n- {name: a, entity: user, aggregate: ratio, numerator: c, denominator: c,\n   window: 1h}",
			[]string{"f:4: feature a: window: a ratio has those of its parts"},
		},
		"ratio of unknowns": {
			"features:\n- {name: a, entity: user, aggregate: ratio, numerator: b, denominator: a}",
			[]string{`numerator "b": no such feature`, "denominator a: want a feature of entity user that is a number"},
		},
		"ratio of others": {
			"features:\n- {name: p, entity: pin, aggregate: count}\n- {name: l, entity: user, aggregate: last}\n- {name: a, entity: user, aggregate: ratio, numerator: p, denominator: l}",
			[]string{"f:4: feature a: numerator p: want a feature of entity user", "f:4: feature a: denominator l: want"},
		},
		"ratio of other groups": {
			"features:\n- {name: b, " + valid + "}\n- {name: g, " + valid + ", group_by: verb}\n- {name: a, entity: user, aggregate: ratio, numerator: b, denominator: g}",
			[]string{"denominator g: want the same group_by as b"},
		},
		"ratio of other order": {
			"features:\n- {name: b, " + valid + ", group_by: [object, verb]}\n- {name: g, " + valid + ", group_by: [verb, object]}\n- {name: a, entity: user, aggregate: ratio, numerator: b, denominator: g}",
			[]string{"denominator g: want the same group_by as b"},
		},
		"ratio of some groups": {
			"features:\n- {name: b, " + valid + ", group_by: verb, n: 2}\n- {name: g, " + valid + ", group_by: verb}\n- {name: a, entity: user, aggregate: ratio, numerator: b, denominator: g}",
			[]string{"f:4: feature a: numerator b: has only its n largest groups: want a feature without n"},
		},
		"long sequence":        {"features: [{name: a, entity: user, aggregate: sequence, n: 513}]", []string{"n: 513: want at most 512 for a sequence"}},
		"sequence in a window": {"features: [{name: a, entity: user, aggregate: sequence, window: 1h}]", []string{"window: a sequence is kept by count: want none"}},
		"sequence of a list": {
			"features: [{name: a, entity: user, aggregate: sequence, columns: objectAttributes.interests}]",
			[]string{`columns "objectAttributes.interests": an action can have several values`},
		},
		"sequence of nothing": {"features: [{name: a, entity: user, aggregate: sequence, columns: []}]", []string{"columns: none: want at least one"}},
		"sequence of sequences": {
			"features: [{name: a, entity: user, aggregate: sequence, of: verb, half_life: 1h}]", []string{"of: sequence is taken of actions", "half_life: sequence does not decay"},
		},
		"type of texts":       {"features: [{name: a, entity: user, aggregate: sequence, embedding: int8}]", []string{"embedding: no column is an embedding"}},
		"type of embeddings":  {"features: [{name: a, entity: user, aggregate: sequence, embedding: int4}]", []string{`embedding "int4": want float32 or int8`}},
		"columns of a count":  {"features: [{name: a, " + valid + ", columns: verb}]", []string{"columns: count has no columns: want none"}},
		"ratio of a sequence": {"features:\n- {name: s, entity: user, aggregate: sequence}\n- {name: a, entity: user, aggregate: ratio, numerator: s, denominator: s}", []string{"numerator s: want", "denominator s: want"}},
		"parts of a count":    {"features: [{name: a, " + valid + ", numerator: a}]", []string{"numerator: count is not a ratio"}},
		"several at once": {
			"features:\n- {name: A, entity: user, aggregate: count}\n- {name: b, entity: us, aggregate: count}\n- {name: c, entity: user, aggregate: count, window: 97h}",
			[]string{"f:2:", "f:3:", "f:4:"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defs, err := Parse("f", []byte(tt.text))
			if err == nil {
				t.Fatalf("parsed: %v", defs)
			}
			lines := strings.Split(err.Error(), "\n")
			must.Equal(t, len(lines), len(tt.want), "mistakes:\n%v", err)
			for i, want := range tt.want {
				expect.Contains(t, lines[i], want, "mistake %d", i)
			}
			expect.AtLeast(t, must.As[*DefinitionError](t, err).Line, 1, "line of the mistake")
		})
	}
}

func TestParse_FollowsAliases(t *testing.T) {
	defs, err := Parse("f", []byte("features:\n- {name: a, entity: user, aggregate: count, verbs: &v [click, save]}\n- {name: b, entity: user, aggregate: count, verbs: *v}"))
	must.OK(t, err)
	expect.NoDiff(t, defs[1].Verbs, defs[0].Verbs, "verbs")
}

func TestBuiltin_IsValid(t *testing.T) {
	defs := must.Get(Load(""))(t)
	have := map[Entity]map[Aggregate]bool{User: {}, Pin: {}, Pair: {}}
	for _, d := range defs {
		expect.True(t, d.Description != "", "%s has a description", d.Name)
		have[d.Entity][d.Aggregate] = true
	}
	want := map[Entity]map[Aggregate]bool{
		User: {Count: true, Rate: true, CountDistinct: true, TakeLast: true, TakeTop: true, MeanEmbedding: true},
		Pin:  {Count: true, Rate: true, CountDistinct: true, MeanEmbedding: true, Ratio: true},
		Pair: {Count: true, Cosine: true},
	}
	same(t, "kinds of built-in features", want, have)
}

func TestLoad_ReadsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "features.yaml")
	must.OK(t, os.WriteFile(path, []byte("features: [{name: a, entity: user, aggregate: count}]"), 0o600))
	defs, err := Load(path)
	if err != nil || len(defs) != 1 || defs[0].Name != "a" {
		t.Errorf("got %v, %v", defs, err)
	}
	expect.Is(t, expect.ErrorOf(Load(path+"x")), os.ErrNotExist, "missing file")
	must.OK(t, os.WriteFile(path, make([]byte, MaxFileBytes+2), 0o600))
	expect.Error(t, expect.ErrorOf(Load(path)), "more than 1048576 bytes", "large file")
}

func TestBuiltin_RoundTripsJSON(t *testing.T) {
	want := must.Get(Load(""))(t)
	text := must.Get(json.Marshal(map[string]any{"features": want, "feature_sets": Sets(want)}))(t)
	got := must.Get(Parse("f", text))(t)
	same(t, "definition", want, got, comparePaths, cmpopts.EquateEmpty())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Builtin))
	f.Add([]byte("features: &a [*a]"))
	f.Add([]byte("features:\n- name: {}\n  where: *x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defs, err := Parse("f", text)
		if err != nil {
			return
		}
		for _, d := range defs {
			expect.False(t, !d.hasNoWindow() && d.Window <= 0 || d.Window > Kept || d.Name == "", "accepted %+v", d)
		}
	})
}
