// Package score computes the write-time score of a candidate. The score orders the candidates of a pool and is computed
// once, when the candidate is written.
//
//	score = ln(quality) + ln(edge weight) + ln(2) · created / half-life
//
// An item that is one half-life older needs twice the quality or weight for the same score.
//
// This is forward decay (Cormode, Shkapenyuk, Srivastava, Xu: "Forward Decay: A Practical Time Decay Model for Streaming
// Systems", ICDE 2009), which Reddit's hot ranking also uses. The decayed weight of an item is quality · weight ·
// 2^(−age/half-life). It differs from e^score only by the factor 2^(−now/half-life), which is the same for all items.
// Therefore the order of two items never changes, and stored scores need no updates as time passes.
package score

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// DefaultHalfLife makes a pin that is one day older need e times the quality or weight: 24h · ln(2).
const DefaultHalfLife = 16*time.Hour + 38*time.Minute + 8*time.Second

// Base returns the score of a pin without an edge weight: ln(quality) + ln(2)·created/halfLife, with both times in seconds
// and created counted from 1970. quality and halfLife must be positive. A quality of 1 adds nothing.
//
// With a halfLife of one day, a float64 resolves the score to 2e-12, which is less than a microsecond of age.
func Base(quality float64, created schemas.Micros, halfLife time.Duration) schemas.BaseScore {
	return schemas.BaseScore(math.Log(quality) + math.Ln2*float64(created)/1e6/halfLife.Seconds())
}

// Weighted returns the score for a receiver whose edge has the given weight: base + ln(weight). weight must be positive. A
// weight of 1 changes nothing.
func Weighted(base schemas.BaseScore, weight float32) schemas.PoolScore {
	return schemas.PoolScore(float64(base) + math.Log(float64(weight)))
}
