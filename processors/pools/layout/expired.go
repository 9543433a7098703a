package layout

import (
	"bytes"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// A candidate that was deferred for too long loses its rows. A pulled pin has no rows and stays in its followee's slot.
// Therefore one row has the newest pins that were deferred for too long, and readers omit them from the pulled pins. Like
// seen pins, they are kept by rebuilds and deleted when the user is erased.
const (
	maxExpiredPins  = 1000
	maxExpiredBytes = 64 << 10 // enough for maxExpiredPins ids of the usual length
)

// AppendExpired appends pins to the value of the row and removes the oldest beyond the caps. A pin that is already in the row
// moves to the end.
func AppendExpired(value []byte, pins []schemas.PinID) []byte {
	moved := make(map[schemas.PinID]bool, len(pins))
	for _, pin := range pins {
		moved[pin] = true
	}
	list := append(slices.DeleteFunc(ParseExpired(value), func(pin schemas.PinID) bool { return moved[pin] }), pins...)
	first, size := len(list), 0
	for first > 0 && len(list)-first < maxExpiredPins && size+len(list[first-1])+1 <= maxExpiredBytes {
		first--
		size += len(list[first]) + 1
	}
	row := make([]byte, 0, size)
	for _, pin := range list[first:] {
		row = AppendIndexed(row, pin)
	}
	return row
}

// ParseExpired returns the pins of the row, oldest first.
func ParseExpired(value []byte) []schemas.PinID {
	var list []schemas.PinID
	for len(value) > 0 {
		pin, rest, _ := bytes.Cut(value, []byte{0})
		list, value = append(list, schemas.PinID(pin)), rest
	}
	return list
}

// hasExpired reports whether a pulled candidate was deferred for too long. It returns false for a candidate that has rows,
// because they were delivered after the previous ones were deleted.
func (v *View) hasExpired(c *Candidate) (bool, error) {
	if c.Place != NoPlace {
		return false, nil
	}
	if v.expired == nil {
		value, err := v.Get([]byte{KindExpired})
		if err != nil {
			return false, err
		}
		v.expired = map[schemas.PinID]struct{}{}
		for _, pin := range ParseExpired(value) {
			v.expired[pin] = struct{}{}
		}
	}
	_, ok := v.expired[c.Pin]
	return ok, nil
}
