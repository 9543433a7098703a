package related

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// strength is the strength of a neighbor: the decayed sum of the weights of its occurrences.
type strength = decay.Sum

// scale is the scale of all strengths. Stored strengths would be wrong on another one.
var scale = decay.NewScale(30 * 24 * time.Hour)

// neighbor is one neighbor of a pin or interest, as of its highest version.
type neighbor struct {
	schemas.Neighbor
	strength strength
	share    float64 // part in the owner's total strength; set only by best
}

// update updates the neighbor's state, unless s is older.
func (n *neighbor) update(s *schemas.Neighbor) {
	if s.Version >= n.Version {
		n.Neighbor = *s
	}
}

// delivered returns the neighbor as a candidate. halfLife is that of the score.
func (n *neighbor) delivered(weight float64, halfLife time.Duration) schemas.DeliveredPin {
	return schemas.DeliveredPin{
		Pin: schemas.PinID(n.ID), Version: n.Version, PinContent: schemas.PinContent{Facets: n.Facets, Created: n.Created},
		BaseScore: score.Base(n.Quality, n.Created, halfLife) + schemas.BaseScore(math.Log(n.share)+math.Log(weight)),
	}
}
