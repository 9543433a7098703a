package related

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// strength is the logarithm of a sum of weights that decay, as of the epoch.
type strength float64

// none is the strength of nothing.
func none() strength { return strength(math.Inf(-1)) }

// once is what a weight at a time is worth: ln(w · 2^(t/half-life)), t in seconds since 1970. Weight and halfLife are
// positive. A float64 resolves it to 2e-13 at a half-life of a month: a strength is good to as many parts.
func once(weight float64, at schemas.Micros, halfLife time.Duration) strength {
	return strength(math.Log(weight) + float64(at)/1e6/halfLife.Seconds()*math.Ln2)
}

// plus adds two strengths: ln(e^a + e^b), without leaving the logarithm, where the numbers would not fit.
func (a strength) plus(b strength) strength {
	if a < b {
		a, b = b, a
	}
	if b == none() {
		return a
	}
	return a + strength(math.Log1p(math.Exp(float64(b-a))))
}

// share is the part of a in all, 0 to 1.
func (a strength) share(all strength) float64 { return min(1, math.Exp(float64(a-all))) }

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
