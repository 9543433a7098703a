package pools

import (
	"bytes"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// What was given up loses its rows. A pulled pin has none and stays in its followee's slot, so the newest pins that were given up
// are remembered, in one row: readers leave them out of what is pulled. As what was seen, they stay through rebuilds and go when
// the user is erased.
const (
	givenUpPins  = 1000
	givenUpBytes = 64 << 10 // of ids of the usual length there are givenUpPins in less
)

// noteGivenUp remembers pins that were given up. Only readers know what is pulled, so all are, also those that had a row: a pin
// of a pushed author is often pulled from an interest.
func noteGivenUp(own rows.Owner, pins []schemas.PinID) error {
	value, err := own.Get([]byte{rowGivenUp})
	if err != nil {
		return err
	}
	return own.Put([]byte{rowGivenUp}, appendGivenUp(value, pins))
}

// appendGivenUp puts pins behind others in a row's value; the oldest go that are too many. A pin stands there once, as what was
// given up last.
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

// parseGivenUp returns the pins of a row, oldest first.
func parseGivenUp(value []byte) []schemas.PinID {
	var list []schemas.PinID
	for len(value) > 0 {
		pin, rest, _ := bytes.Cut(value, []byte{0})
		list, value = append(list, schemas.PinID(pin)), rest
	}
	return list
}

// gaveUp says whether a pulled candidate was given up. One that stands in rows lost them then, and has others since.
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
