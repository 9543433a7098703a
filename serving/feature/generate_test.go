package feature

import (
	"math"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/actiontest"
	"github.com/smartfeed/smartfeed/schemas"
)

// now is the present time in every test. It is not a multiple of a millisecond.
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
	times := rapid.Custom(func(t *rapid.T) schemas.Micros {
		return now + schemas.Micros(rapid.Int64Range(-int64(120*hour), int64(hour)).Draw(t, "age"))
	})
	return actiontest.Actions("user:1", times, "", "1", "2.5", "x", "ä")
}
