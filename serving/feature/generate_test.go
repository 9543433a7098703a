package feature

import (
	"math"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// now is the present time in every test. It is not a whole millisecond.
const now = schemas.Micros(1_700_000_000_123_456)

const hour = schemas.Micros(3600e6)

// equal compares answers. Weights may be added in another order, so sums may differ slightly. Counts are whole numbers
// and must be exact.
var equal = cmp.Options{
	cmpopts.EquateApprox(1e-9, 1e-12),
	cmp.Comparer(func(a, b Number) bool {
		return math.Abs(float64(a-b)) <= max(1e-12, 1e-9*math.Abs(float64(a)))
	}),
}

// valuePaths returns all paths with values instead of vectors.
func valuePaths() []Path {
	return []Path{
		{part: verbPart}, {part: objectPart}, {part: actorPart}, {part: objectAuthor}, {part: objectBoard},
		{part: objectInterests}, {part: actorInterests}, {part: verbBoard}, {part: verbSurface},
		{objectAttribute, "x"}, {actorAttribute, "x"}, {verbAttribute, "x.y"},
	}
}

// action generates arbitrary actions of user:1.
func action() *rapid.Generator[schemas.EnrichedAction] {
	return rapid.Custom(func(t *rapid.T) schemas.EnrichedAction {
		interests := rapid.SliceOfN(rapid.SampledFrom([]schemas.InterestID{"interest:1", "interest:2", "interest:3"}), 0, 3)
		return schemas.EnrichedAction{
			Actor:     "user:1",
			Timestamp: now + schemas.Micros(rapid.Int64Range(-int64(120*hour), int64(hour)).Draw(t, "time")),
			Verb:      rapid.SampledFrom([]schemas.Verb{schemas.View, schemas.Click, schemas.Save}).Draw(t, "verb"),
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

func attributes() *rapid.Generator[map[string]string] {
	names := rapid.SampledFrom([]string{"x", "x.y", "author" /* hidden by the field */})
	return rapid.MapOfN(names, rapid.SampledFrom([]string{"", "1", "2.5", "x", "ä"}), 0, 3)
}

func vectors() *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Float32Range(-10, 10), 0, 3)
}
