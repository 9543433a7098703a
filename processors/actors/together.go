package actors

import (
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// together says whether two actions of a user on different pins are near enough in event time to make these neighbours,
// and returns the other one's pin with what that is worth: as much as the later action, whichever of them arrives first.
func together(r, other *schemas.RelatedRequest, within time.Duration) (schemas.Near, bool) {
	first, last := other, r
	if last.Time < first.Time || last.Time == first.Time && last.Weight < first.Weight {
		first, last = last, first
	}
	near := schemas.Near{Neighbour: other.Pin, Weight: last.Weight, Time: last.Time}
	return near, other.Pin.ID != r.Pin.ID && apart(first.Time, last.Time) <= within
}

// apart is the time between two events, whichever was first.
func apart(a, b schemas.Micros) time.Duration {
	return max(a.Time().Sub(b.Time()), b.Time().Sub(a.Time()))
}
