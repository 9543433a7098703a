// Package score computes the write-time score of a candidate. The score orders the candidates of a pool and is computed
// once, when the candidate is written.
//
//	score = ln(quality) + ln(edge weight) + created / τ
//
// τ is a time constant, not a half-life: an item that is τ older needs e times the quality or weight for the same score. The
// parameter halfLife holds τ.
//
// This is forward decay (Cormode, Shkapenyuk, Srivastava, Xu: "Forward Decay: A Practical Time Decay Model for Streaming
// Systems", ICDE 2009), which Reddit's hot ranking also uses. The decayed weight of an item is quality · weight ·
// e^(−age/τ). It differs from e^score only by the factor e^(−now/τ), which is the same for all items. Therefore the order of
// two items never changes, and stored scores need no updates as time passes.
package score

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Base returns the score of a pin without an edge weight: ln(quality) + created/halfLife, with both times in seconds and
// created counted from 1970. quality and halfLife must be positive. A quality of 1 adds nothing.
//
// With a halfLife of one day, a float64 resolves the score to 4e-12, which is less than a microsecond of age.
func Base(quality float64, created schemas.Micros, halfLife time.Duration) float64 {
	return math.Log(quality) + float64(created)/1e6/halfLife.Seconds()
}

// Weighted returns the score for a receiver whose edge has the given weight: base + ln(weight). weight must be positive. A
// weight of 1 changes nothing.
func Weighted(base float64, weight float32) float64 {
	return base + math.Log(float64(weight))
}
