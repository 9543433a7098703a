package feature

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// now is the moment of every test: not on a millisecond.
const now = schemas.Micros(1_700_000_000_123_456)

const hour = schemas.Micros(3600e6)

// windows are few, so that generated actions can fall on their edges.
func windows() []time.Duration {
	return []time.Duration{time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 95 * time.Hour, Kept}
}

func definitions() *rapid.Generator[Definition] {
	return rapid.Custom(func(t *rapid.T) Definition {
		d := Definition{
			Name:      "f",
			Entity:    User,
			Aggregate: rapid.SampledFrom([]Aggregate{Count, Rate, Sum, Mean, Min, Max, CountDistinct, TakeLast, TakeTop, MeanEmbedding, Cosine}).Draw(t, "aggregate"),
			Window:    rapid.SampledFrom(windows()).Draw(t, "window"),
			Verbs:     rapid.SliceOfNDistinct(rapid.SampledFrom(verbs()), 0, 2, rapid.ID[schemas.Verb]).Draw(t, "verbs"),
			Where:     rapid.SliceOfNDistinct(conditions(), 0, 2, func(c Condition) Path { return c.Path }).Draw(t, "where"),
		}
		// What is written as a JSON object comes back in the order of its keys.
		slices.SortFunc(d.Where, func(a, b Condition) int {
			if a.Path.String() < b.Path.String() {
				return -1
			}
			return 1
		})
		if r, _ := d.Aggregate.rule(); r.decays {
			d.HalfLife = rapid.SampledFrom([]time.Duration{0, 0, MinHalfLife, 5 * time.Hour, MaxHalfLife}).Draw(t, "half-life")
		}
		d.Verbs, d.Where = nilIfEmpty(d.Verbs), nilIfEmpty(d.Where)
		complete(t, &d)
		return d
	})
}

func nilIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func complete(t *rapid.T, d *Definition) {
	r, _ := d.Aggregate.rule()
	switch r.of {
	case numbersAt:
		d.Of = rapid.SampledFrom(freePaths()).Draw(t, "of")
	case valuesAt:
		d.Of = rapid.SampledFrom(valuePaths()).Draw(t, "of")
	case vectorsAt:
		d.Of = Path{part: rapid.SampledFrom([]part{objectEmbedding, actorEmbedding}).Draw(t, "of")}
	}
	if r.n {
		d.N = rapid.IntRange(1, 4).Draw(t, "n")
	}
	if d.Aggregate == Cosine {
		d.Entity = Pair
	}
	if r.grouped && rapid.Bool().Draw(t, "grouped") {
		d.GroupBy = rapid.SampledFrom(valuePaths()).Draw(t, "group_by")
	}
	if r.grouped && d.GroupBy.ofPin() && rapid.Bool().Draw(t, "pair") {
		d.Entity = Pair
	}
}

func conditions() *rapid.Generator[Condition] {
	return rapid.Custom(func(t *rapid.T) Condition {
		return Condition{
			Path: rapid.SampledFrom(valuePaths()).Draw(t, "path"),
			In: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
				"", "1", "2.5", "x", "save", "pin:1", "user:a", "board:1", "interest:1", "interest:2", "home",
			}), 1, 4, rapid.ID[string]).Draw(t, "in"),
		}
	})
}

func freePaths() []Path {
	return []Path{{objectAttribute, "x"}, {actorAttribute, "x"}, {verbAttribute, "x.y"}}
}

func valuePaths() []Path {
	fixed := []Path{
		{part: verbPart}, {part: objectPart}, {part: actorPart}, {part: objectAuthor}, {part: objectBoard},
		{part: objectInterests}, {part: actorInterests}, {part: verbBoard}, {part: verbSurface},
	}
	return append(fixed, freePaths()...)
}

func verbs() []schemas.Verb { return []schemas.Verb{schemas.View, schemas.Click, schemas.Save} }

// times are those of actions: on and next to every edge of every window, or anywhere in reach.
func times(asOf schemas.Micros) *rapid.Generator[schemas.Micros] {
	edges := []schemas.Micros{asOf, now, now - schemas.MicrosOf(time.UnixMilli(durationMS(Kept)))}
	for _, w := range windows() {
		edges = append(edges, asOf-schemas.Micros(w.Microseconds()))
	}
	near := rapid.Custom(func(t *rapid.T) schemas.Micros {
		return rapid.SampledFrom(edges).Draw(t, "edge") + rapid.SampledFrom([]schemas.Micros{-1000, -457, -456, -1, 0, 1, 543, 544, 1000}).Draw(t, "off")
	})
	far := rapid.Map(rapid.Int64Range(int64(now-120*hour), int64(now+hour/12)), func(m int64) schemas.Micros { return schemas.Micros(m) })
	return rapid.OneOf(near, near, far)
}

func durationMS(d time.Duration) int64 { return d.Milliseconds() }

// actions are one user's: no id twice, as producers make them.
func actions(user schemas.UserID, asOf schemas.Micros) *rapid.Generator[[]schemas.EnrichedAction] {
	return rapid.Custom(func(t *rapid.T) []schemas.EnrichedAction {
		list := rapid.SliceOfN(action(user, asOf), 0, 25).Draw(t, "actions")
		for i := range list {
			list[i].ID = fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"", "a", "ä"}).Draw(t, "id"), i)
		}
		return list
	})
}

func action(user schemas.UserID, asOf schemas.Micros) *rapid.Generator[schemas.EnrichedAction] {
	return rapid.Custom(func(t *rapid.T) schemas.EnrichedAction {
		interests := rapid.SliceOfN(rapid.SampledFrom([]schemas.InterestID{"interest:1", "interest:2", "interest:3"}), 0, 3)
		return schemas.EnrichedAction{
			Actor:     user,
			Timestamp: times(asOf).Draw(t, "time"),
			Verb:      rapid.SampledFrom(verbs()).Draw(t, "verb"),
			Object:    rapid.SampledFrom([]schemas.ID{"pin:1", "pin:2", "pin:3"}).Draw(t, "object"),
			ActorAttributes: schemas.ActorAttributes{
				Interests: interests.Draw(t, "actor interests"), Attributes: attributes().Draw(t, "actor attributes"),
				Embedding: vectors().Draw(t, "actor embedding"),
			},
			VerbAttributes: schemas.VerbAttributes{
				Board:      rapid.SampledFrom([]schemas.BoardID{"", "board:1"}).Draw(t, "verb board"),
				Surface:    rapid.SampledFrom([]string{"", "home"}).Draw(t, "surface"),
				Attributes: attributes().Draw(t, "verb attributes"),
			},
			ObjectAttributes: schemas.ObjectAttributes{
				Facets: schemas.Facets{
					Author:    rapid.SampledFrom([]schemas.UserID{"", "user:a", "user:b"}).Draw(t, "author"),
					Board:     rapid.SampledFrom([]schemas.BoardID{"", "board:1", "board:2"}).Draw(t, "board"),
					Interests: interests.Draw(t, "interests"),
				},
				Attributes: attributes().Draw(t, "attributes"), Embedding: vectors().Draw(t, "embedding"),
			},
		}
	})
}

// attributes have numbers, what looks like numbers and is none, and sums that overflow.
func attributes() *rapid.Generator[map[string]string] {
	values := rapid.SampledFrom([]string{"", "1", "2.5", "-3e2", "0.1", "x", "NaN", "Inf", "0x10", " 1", "1_0", "1e999", "1.7e308"})
	return rapid.MapOfN(rapid.SampledFrom([]string{"x", "x.y", "author" /* hidden by the field */}), values, 0, 3)
}

func vectors() *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Float32Range(-10, 10), 0, 3)
}
