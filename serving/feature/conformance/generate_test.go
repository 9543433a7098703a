package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/actiontest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

func path(text string) feature.Path {
	p, err := feature.ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}

func paths(texts ...string) *rapid.Generator[feature.Path] {
	return rapid.SampledFrom(convert.All(texts, path))
}

// Paths by type: numbers, values, values of the pin, vectors.
func numberPaths() *rapid.Generator[feature.Path] {
	return paths("objectAttributes.x", "actorAttributes.x", "verbAttributes.x.y")
}

func valuePaths() *rapid.Generator[feature.Path] {
	return rapid.OneOf(pinPaths(), numberPaths(), paths("verb", "actor", "actorAttributes.interests", "verbAttributes.board", "verbAttributes.surface"))
}

func pinPaths() *rapid.Generator[feature.Path] {
	return paths("object", "objectAttributes.author", "objectAttributes.board", "objectAttributes.interests", "objectAttributes.x")
}

func vectorPaths() *rapid.Generator[feature.Path] {
	return paths("objectAttributes.embedding", "actorAttributes.embedding")
}

// goesWith says which keys an aggregate accepts.
type goesWith struct {
	of      func() *rapid.Generator[feature.Path] // nil: none
	grouped bool                                  // accepts group_by
	n       int                                   // largest n; 0: takes none
	decays  bool                                  // accepts half_life
}

var aggregates = map[feature.Aggregate]goesWith{
	feature.Count:         {grouped: true, decays: true},
	feature.Rate:          {grouped: true},
	feature.Sum:           {of: numberPaths, grouped: true, decays: true},
	feature.Mean:          {of: numberPaths, grouped: true, decays: true},
	feature.Min:           {of: numberPaths, grouped: true},
	feature.Max:           {of: numberPaths, grouped: true},
	feature.CountDistinct: {of: valuePaths, grouped: true},
	feature.TakeLast:      {n: 4},
	feature.TakeTop:       {of: valuePaths, n: 4},
	feature.TakeSequence:  {n: 20},
	feature.MeanEmbedding: {of: vectorPaths, decays: true},
	feature.Cosine:        {of: vectorPaths, decays: true},
}

// windows returns a small set of windows, so that actions fall on their edges.
func windows() []time.Duration {
	return []time.Duration{time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 95 * time.Hour, feature.Kept}
}

// definitions generates definitions of entity user and pair, with every aggregate except Ratio. feature.Parse accepts
// each, and MarshalJSON writes it.
func definitions() *rapid.Generator[feature.Definition] {
	return rapid.Custom(func(t *rapid.T) feature.Definition {
		d := feature.Definition{
			Name:      "f",
			Entity:    feature.User,
			Aggregate: rapid.SampledFrom(slices.Sorted(maps.Keys(aggregates))).Draw(t, "aggregate"),
			Window:    rapid.SampledFrom(windows()).Draw(t, "window"),
			Verbs:     orNil(rapid.SliceOfNDistinct(rapid.SampledFrom([]schemas.Verb{schemas.View, schemas.Click, schemas.Save, "none"}), 0, 2, rapid.ID).Draw(t, "verbs")),
			Where:     orNil(rapid.SliceOfNDistinct(conditions(), 0, 2, func(c feature.Condition) feature.Path { return c.Path }).Draw(t, "where")),
		}
		// A JSON object is written with sorted keys.
		slices.SortFunc(d.Where, func(a, b feature.Condition) int { return strings.Compare(a.Path.String(), b.Path.String()) })
		with := aggregates[d.Aggregate]
		if with.of != nil {
			d.Of = with.of().Draw(t, "of")
		}
		if with.decays {
			d.HalfLife = rapid.SampledFrom([]time.Duration{0, 0, feature.MinHalfLife, 5 * time.Hour, feature.MaxHalfLife}).Draw(t, "half-life")
		}
		if with.n > 0 {
			d.N = rapid.IntRange(1, with.n).Draw(t, "n")
		}
		switch {
		case d.Aggregate == feature.TakeSequence:
			d.Window, d.Columns = 0, rapid.SliceOfNDistinct(columns(), 1, 4, rapid.ID).Draw(t, "columns")
			if slices.ContainsFunc(d.Columns, isVector) {
				d.Embedding = rapid.SampledFrom([]feature.Embedding{feature.Float32, feature.Int8}).Draw(t, "embedding")
			}
		case d.Aggregate == feature.Cosine:
			d.Entity = feature.Pair
		case with.grouped && rapid.Bool().Draw(t, "pair"):
			d.Entity, d.GroupBy = feature.Pair, groupings(pinPaths()).Draw(t, "group_by")
		case with.grouped && rapid.Bool().Draw(t, "grouped"):
			d.GroupBy = groupings(valuePaths()).Draw(t, "group_by")
			d.N = rapid.IntRange(0, 4).Draw(t, "n")
		}
		return d
	})
}

func columns() *rapid.Generator[feature.Path] {
	return rapid.OneOf(numberPaths(), vectorPaths(), paths("verb", "object", "actor", "objectAttributes.author", "objectAttributes.board", "verbAttributes.surface"))
}

func isVector(p feature.Path) bool { return strings.HasSuffix(p.String(), ".embedding") }

// groupings generates one to three different paths.
func groupings(paths *rapid.Generator[feature.Path]) *rapid.Generator[feature.Grouping] {
	return rapid.Map(rapid.SliceOfNDistinct(paths, 1, feature.MaxKeys, rapid.ID), func(by []feature.Path) feature.Grouping { return by })
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func conditions() *rapid.Generator[feature.Condition] {
	return rapid.Custom(func(t *rapid.T) feature.Condition {
		return feature.Condition{
			Path: valuePaths().Draw(t, "path"),
			In: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
				"", "1", "2.5", "x", "save", "pin:1", "pin:it's", "user:a", "board:1", "interest:1", "interest:it's", "home",
			}), 1, 4, rapid.ID).Draw(t, "in"),
		}
	})
}

// itemDefinitions generates definitions of entity pin, with every aggregate that they accept.
func itemDefinitions() *rapid.Generator[feature.Definition] {
	return rapid.Custom(func(t *rapid.T) feature.Definition {
		d := feature.Definition{
			Entity:    feature.Pin,
			Window:    rapid.SampledFrom(append(windows(), 5*time.Minute)).Draw(t, "window"),
			Aggregate: rapid.SampledFrom([]feature.Aggregate{feature.Count, feature.Count, feature.Rate, feature.CountDistinct, feature.MeanEmbedding}).Draw(t, "aggregate"),
		}
		switch d.Aggregate {
		case feature.Count, feature.Rate:
			d.Verbs = rapid.SampledFrom([][]schemas.Verb{nil, {"save"}, {schemas.ImpressionCount, "click"}}).Draw(t, "verbs")
			if rapid.Bool().Draw(t, "grouped") {
				d.GroupBy = feature.Grouping{path("verb")}
				d.N = rapid.IntRange(0, 2).Draw(t, "n")
			}
		case feature.MeanEmbedding:
			d.Window, d.Of = 0, path("actorAttributes.embedding")
		case feature.CountDistinct:
			d.Of = path("actor")
		}
		if d.Aggregate == feature.Count {
			d.HalfLife = rapid.SampledFrom([]time.Duration{0, feature.MinHalfLife, 7 * time.Hour}).Draw(t, "half-life")
		}
		return d
	})
}

// times generates times of actions: on and next to every edge of every window, or anywhere in range.
func times(span feature.Span) *rapid.Generator[schemas.Micros] {
	edges := []schemas.Micros{span.AsOf, span.Now, span.Now - schemas.Micros(feature.Kept.Microseconds())}
	for _, w := range windows() {
		edges = append(edges, span.AsOf-schemas.Micros(w.Microseconds()))
	}
	near := rapid.Custom(func(t *rapid.T) schemas.Micros {
		edge := rapid.SampledFrom(edges).Draw(t, "edge")
		if rapid.Bool().Draw(t, "of a millisecond") {
			edge -= edge % 1000
		}
		return edge + rapid.SampledFrom([]schemas.Micros{-1000, -1, 0, 1, 999, 1000}).Draw(t, "off")
	})
	far := rapid.Custom(func(t *rapid.T) schemas.Micros {
		return span.Now + schemas.Micros(rapid.Int64Range(-int64(120*hour), int64(hour/12)).Draw(t, "far"))
	})
	return rapid.OneOf(near, near, far)
}

// histories generates the actions of one person. No id is repeated, as producers guarantee. The order of the ids is not
// that of UTF-16.
func histories(p person, number int) *rapid.Generator[[]schemas.EnrichedAction] {
	return rapid.Custom(func(t *rapid.T) []schemas.EnrichedAction {
		list := rapid.SliceOfN(actions(p), 0, 25).Draw(t, "actions")
		for i := range list {
			list[i].Number = int64((i+7)%len(list)) + 1
			list[i].ID = fmt.Sprintf("%s%d-%d", rapid.SampledFrom([]string{"", "a", "ä", "\uff5e", "\U0001F600"}).Draw(t, "id"), number, i)
		}
		return list
	})
}

// actions generates actions of a person. The values of attributes are numbers, texts that look like numbers, sums that
// overflow, and texts that a query must quote.
func actions(p person) *rapid.Generator[schemas.EnrichedAction] {
	return actiontest.Actions(p.user, times(p.span),
		"", "1", "2.5", "-3e2", "0.1", "x", "NaN", "Inf", "0x10", " 1", "1_0", "1e999", "1.7e308", `"'\`, "null", strings.Repeat("long ", 150))
}

// itemsOf generates counts of a pin in some of its steps, including those at the edges of windows.
func itemsOf(pin schemas.PinID, now schemas.Micros) *rapid.Generator[item] {
	return rapid.Custom(func(t *rapid.T) item {
		at := now + rapid.SampledFrom([]schemas.Micros{0, schemas.ItemStep, -hour / 2}).Draw(t, "later")
		at += schemas.Micros(rapid.Int64Range(-3e8, 3e8).Draw(t, "phase"))
		if rapid.Bool().Draw(t, "on a step") {
			at -= at % schemas.ItemStep
			at += rapid.SampledFrom([]schemas.Micros{0, -1, -1000, -1001, 1000}).Draw(t, "off")
		}
		steps := rapid.SliceOfNDistinct(rapid.IntRange(-1200, 3), 0, 12, rapid.ID).Draw(t, "steps")
		steps = append(steps, 0, -1, -11, -12, -13, -288)
		slices.Sort(steps)
		p := item{pin: pin, now: at}
		for _, s := range slices.Compact(steps) {
			c := schemas.ItemCounts{Pin: pin, Start: (at/schemas.ItemStep + schemas.Micros(s)) * schemas.ItemStep}
			c.Counts = rapid.MapOfN(rapid.SampledFrom([]string{"save", "click", schemas.ImpressionCount}), rapid.Int64Range(0, 5), 0, 3).Draw(t, "counts")
			for range rapid.IntRange(0, 5).Draw(t, "actors") {
				c.Actors = c.Actors.Add(fmt.Sprint("user:", rapid.IntRange(0, 20).Draw(t, "actor")))
			}
			c.Embedding = rapid.SliceOfN(rapid.Float32Range(-3, 3), 0, 2).Draw(t, "embedding")
			p.counts = append(p.counts, c)
		}
		return p
	})
}

// versionsOf generates a few versions of a pin. The last may delete it.
func versionsOf(pin schemas.PinID) *rapid.Generator[versions] {
	return rapid.Custom(func(t *rapid.T) versions {
		p := versions{pin: pin}
		for v := range rapid.IntRange(0, 4).Draw(t, "versions") {
			a := schemas.PinAttributes{Pin: pin, Version: schemas.Version(v), Deleted: rapid.IntRange(0, 9).Draw(t, "deleted") == 0}
			a.Author = rapid.SampledFrom([]schemas.UserID{"user:a", "user:it's"}).Draw(t, "author")
			a.Board = rapid.SampledFrom([]schemas.BoardID{"", "board:1"}).Draw(t, "board")
			a.Language = rapid.SampledFrom([]string{"", "de"}).Draw(t, "language")
			a.Interests = rapid.SliceOfNDistinct(rapid.SampledFrom([]schemas.InterestID{"interest:1", "interest:it's"}), 0, 2, rapid.ID).Draw(t, "interests")
			a.Attributes = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"", "1"}), 0, 2).Draw(t, "attributes")
			a.Embedding = actiontest.Embeddings().Draw(t, "embedding")
			p.all = append(p.all, a)
		}
		return p
	})
}
