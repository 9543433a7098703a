package related

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// strength is how strong a neighbour is: the decayed sum of the weights with which it was seen to be one.
type strength = decay.Sum

// neighbour is one row of a pin or interest.
type neighbour struct {
	id       schemas.ID
	strength strength
	share    float64 // in all strength of the owner; known of what best returns
	version  schemas.Version
	quality  float64
	body     ranked.Body // facets and creation of a pin
}

// see takes over what is said of a neighbour, if that is not older than what is known.
func (n *neighbour) see(s *schemas.Neighbour) {
	if s.Version < n.version {
		return
	}
	n.version, n.quality = s.Version, s.Quality
	n.body = ranked.Body{Facets: s.Facets, Created: s.Created}
}

// delivered is the neighbour as a candidate.
func (n *neighbour) delivered(weight float64, halfLife time.Duration) schemas.DeliveredPin {
	base := score.Base(n.quality, n.body.Created, halfLife)
	return schemas.DeliveredPin{
		Pin: schemas.PinID(n.id), Version: n.version, Facets: n.body.Facets, Created: n.body.Created,
		Score: base + math.Log(n.share) + math.Log(weight),
	}
}
