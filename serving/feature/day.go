package feature

import (
	"encoding/binary"

	"github.com/smartfeed/smartfeed/schemas"
)

// A row holds the counts of a pin for one day. The features of a thousand pins then take a few thousand reads by key
// instead of hundreds of rows per pin. The row holds the nonempty steps, ascending, each as
//
//	number   of the step in its day, a uvarint
//	counts   appendCounts, as a text
//	actors   a schemas.Sketch, as a text

// stepsADay is the number of steps in a day.
const stepsADay = dayMillis / stepMillis

// day is the encoded row.
type day []byte

// stepOf returns the number of the step that starts at start.
func stepOf(start millis) uint64 {
	return uint64((start - millis(dayOf(start))*dayMillis) / stepMillis)
}

// put returns the row with a step, which replaces the previous counts of that step.
func (d day) put(number uint64, c *schemas.ItemCounts) (day, error) {
	step := binary.AppendUvarint(nil, number)
	step = appendText(step, string(appendCounts(nil, c.Counts)))
	step = appendText(step, string(c.Actors))
	from, to := len(d), len(d)
	rest := string(d)
	for rest != "" {
		s, after, ok := cutStep(rest)
		if !ok {
			return nil, errCorrupt
		}
		if s.number >= number {
			from, to = len(d)-len(rest), len(d)-len(rest)
			if s.number == number {
				to = len(d) - len(after)
			}
			break
		}
		rest = after
	}
	out := make(day, 0, len(d)+len(step))
	return append(append(append(out, d[:from]...), step...), d[to:]...), nil
}

// step is a decoded step.
type step struct {
	number         uint64
	counts, actors string
}

// cutStep cuts the first step off s.
func cutStep(s string) (first step, rest string, ok bool) {
	number, n := uvarint(s)
	if n <= 0 || number >= uint64(stepsADay) {
		return step{}, "", false
	}
	first.number = number
	if first.counts, rest, ok = cutText(s[n:]); !ok {
		return step{}, "", false
	}
	first.actors, rest, ok = cutText(rest)
	return first, rest, ok
}
