package actors

import (
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// together reports whether two actions of a user on different pins are close enough in event time to make the pins
// neighbors. It returns the pin of the other action, with the weight and time of the later action, whichever arrived first.
func together(r, other *schemas.RelatedRequest, within time.Duration) (schemas.Near, bool) {
	first, last := other, r
	if last.Time < first.Time || last.Time == first.Time && last.Weight < first.Weight {
		first, last = last, first
	}
	near := schemas.Near{Neighbour: other.Pin, Weight: last.Weight, Time: last.Time}
	return near, other.Pin.ID != r.Pin.ID && apart(first.Time, last.Time) <= within
}

// apart returns the time between two events, in either order.
func apart(a, b schemas.Micros) time.Duration {
	return max(a.Time().Sub(b.Time()), b.Time().Sub(a.Time()))
}
