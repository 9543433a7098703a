package related

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// strength is the strength of a neighbor: the decayed sum of the weights of its occurrences.
type strength = decay.Sum

// neighbour is one neighbor of a pin or interest.
type neighbour struct {
	id       schemas.ID
	strength strength
	share    float64 // part in the owner's total strength; set only by best
	version  schemas.Version
	quality  float64
	body     ranked.Body // facets and creation time of a pin
}

// see updates the neighbor's version, quality and body, unless s is older.
func (n *neighbour) see(s *schemas.Neighbour) {
	if s.Version < n.version {
		return
	}
	n.version, n.quality = s.Version, s.Quality
	n.body = ranked.Body{Facets: s.Facets, Created: s.Created}
}

// delivered returns the neighbor as a candidate. halfLife is the time constant of the score.
func (n *neighbour) delivered(weight float64, halfLife time.Duration) schemas.DeliveredPin {
	base := score.Base(n.quality, n.body.Created, halfLife)
	return schemas.DeliveredPin{
		Pin: schemas.PinID(n.id), Version: n.version, Facets: n.body.Facets, Created: n.body.Created,
		BaseScore: base + schemas.BaseScore(math.Log(n.share)+math.Log(weight)),
	}
}
