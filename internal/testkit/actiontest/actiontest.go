// Package actiontest generates enriched actions for property tests.
package actiontest

import (
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// Actions generates actions of a user at the given times, without ids. Some ids contain quotes, and the attributes have
// the given values.
func Actions(user schemas.UserID, times *rapid.Generator[schemas.Micros], values ...string) *rapid.Generator[schemas.EnrichedAction] {
	attributes := rapid.MapOfN(rapid.SampledFrom([]string{"x", "x.y", "author" /* hidden by the field */}), rapid.SampledFrom(values), 0, 3)
	interests := rapid.SliceOfN(rapid.SampledFrom([]schemas.InterestID{"interest:1", "interest:2", "interest:it's"}), 0, 3)
	return rapid.Custom(func(t *rapid.T) schemas.EnrichedAction {
		return schemas.EnrichedAction{
			Actor:     user,
			Timestamp: times.Draw(t, "time"),
			Verb:      rapid.SampledFrom([]schemas.Verb{schemas.View, schemas.Click, schemas.Save}).Draw(t, "verb"),
			Object:    rapid.SampledFrom([]schemas.ID{"pin:1", "pin:2", "pin:it's"}).Draw(t, "object"),
			ActorAttributes: schemas.ActorAttributes{
				Interests: interests.Draw(t, "actor interests"), Attributes: attributes.Draw(t, "actor attributes"),
				Embedding: Embeddings().Draw(t, "actor embedding"),
			},
			VerbAttributes: schemas.VerbAttributes{
				Board:      rapid.SampledFrom([]schemas.BoardID{"", "board:1"}).Draw(t, "verb board"),
				Surface:    rapid.SampledFrom([]string{"", "home"}).Draw(t, "surface"),
				Attributes: attributes.Draw(t, "verb attributes"),
			},
			ObjectAttributes: schemas.ObjectAttributes{
				Facets: schemas.Facets{
					Author:    rapid.SampledFrom([]schemas.UserID{"", "user:a", "user:b"}).Draw(t, "author"),
					Board:     rapid.SampledFrom([]schemas.BoardID{"", "board:1", "board:2"}).Draw(t, "board"),
					Interests: interests.Draw(t, "interests"),
				},
				Attributes: attributes.Draw(t, "attributes"), Embedding: Embeddings().Draw(t, "embedding"),
			},
		}
	})
}

// Embeddings generates embeddings of up to three elements.
func Embeddings() *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Float32Range(-10, 10), 0, 3)
}
