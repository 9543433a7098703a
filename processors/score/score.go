// Package score holds the write-time score of a candidate: the place of a pin among all pins of a pool, computed once.
//
//	score = ln(quality) + ln(edge weight) + created / half-life
//
// It is forward decay (Cormode, Shkapenyuk, Srivastava, Xu: "Forward Decay: A Practical Time Decay Model for
// Streaming Systems", ICDE 2009), the shape that Reddit's hot ranking made known: the usual weight of an item,
// quality · weight · e^(−age/half-life), differs from e^score only by the factor e^(−now/half-life), which is the same
// for every item. So the order of two items is the same at every moment, old and new can be compared for ever, and no
// stored score needs rewriting as time passes.
//
// One half-life of age costs as much as a factor of e in quality or in weight.
package score

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Base returns the score of a pin before anybody's edge weight: ln(quality) + created/halfLife, both times in seconds
// since 1970. Quality and halfLife must be positive; a quality of 1 adds nothing.
//
// A float64 resolves it to 4e-12 at a half-life of one day: below a microsecond of age.
func Base(quality float64, created schemas.Micros, halfLife time.Duration) float64 {
	return math.Log(quality) + float64(created)/1e6/halfLife.Seconds()
}

// Weighted returns the score of a pin for a receiver whose edge has the weight: base + ln(weight). Weight must be
// positive; 1 changes nothing.
func Weighted(base float64, weight float32) float64 {
	return base + math.Log(float64(weight))
}
