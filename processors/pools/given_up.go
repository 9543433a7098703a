package pools

import (
	"bytes"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// A candidate that was deferred for too long loses its rows. A pulled pin has no rows and stays in its followee's slot.
// Therefore one row remembers the newest pins that were deferred for too long, and readers leave them out of the pulled pins.
// Like seen pins, they are kept by rebuilds and deleted when the user is erased.
const (
	givenUpPins  = 1000
	givenUpBytes = 64 << 10 // enough for givenUpPins ids of the usual length
)

// noteGivenUp remembers pins that were deferred for too long. Only readers know which pins are pulled, so it remembers all of
// them, including those that had a row: a pin of a pushed author is often pulled from an interest.
func noteGivenUp(own rows.Owner, pins []schemas.PinID) error {
	value, err := own.Get([]byte{rowGivenUp})
	if err != nil {
		return err
	}
	return own.Put([]byte{rowGivenUp}, appendGivenUp(value, pins))
}

// appendGivenUp appends pins to the value of the row and removes the oldest beyond the caps. A pin that is already in the row
// moves to the end.
func appendGivenUp(value []byte, pins []schemas.PinID) []byte {
	again := make(map[schemas.PinID]bool, len(pins))
	for _, pin := range pins {
		again[pin] = true
	}
	list := append(slices.DeleteFunc(parseGivenUp(value), func(pin schemas.PinID) bool { return again[pin] }), pins...)
	first, size := len(list), 0
	for first > 0 && len(list)-first < givenUpPins && size+len(list[first-1])+1 <= givenUpBytes {
		first--
		size += len(list[first]) + 1
	}
	is := make([]byte, 0, size)
	for _, pin := range list[first:] {
		is = appendIndexed(is, pin)
	}
	return is
}

// parseGivenUp returns the pins of the row, oldest first.
func parseGivenUp(value []byte) []schemas.PinID {
	var list []schemas.PinID
	for len(value) > 0 {
		pin, rest, _ := bytes.Cut(value, []byte{0})
		list, value = append(list, schemas.PinID(pin)), rest
	}
	return list
}

// gaveUp reports whether a pulled candidate was deferred for too long. It returns false for a candidate that has rows: they
// were delivered after giveUp deleted the earlier ones.
func (v *view) gaveUp(c *candidate) (bool, error) {
	if c.place != noPlace {
		return false, nil
	}
	if v.givenUp == nil {
		value, err := v.Get([]byte{rowGivenUp})
		if err != nil {
			return false, err
		}
		v.givenUp = map[schemas.PinID]struct{}{}
		for _, pin := range parseGivenUp(value) {
			v.givenUp[pin] = struct{}{}
		}
	}
	_, ok := v.givenUp[c.pin]
	return ok, nil
}
