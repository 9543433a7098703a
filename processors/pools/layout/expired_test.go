package layout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestAppendExpired_RemovesOldest(t *testing.T) {
	pins := func(from, to, long int) (list []schemas.PinID) {
		for n := from; n < to; n++ {
			id := fmt.Sprintf("pin:%04d", n)
			list = append(list, schemas.PinID(id+strings.Repeat("x", max(0, long-len(id)))))
		}
		return list
	}
	expect := func(when string, value []byte, want []schemas.PinID) {
		t.Helper()
		expect.NoDiff(t, ParseExpired(value), want, "%s", when)
	}
	value := AppendExpired(nil, pins(0, 3, 0))
	expect("first pins", value, pins(0, 3, 0))
	value = AppendExpired(value, pins(1, 2, 0))
	expect("a repeated pin", value, slices.Concat(pins(0, 1, 0), pins(2, 3, 0), pins(1, 2, 0)))
	value = AppendExpired(value, pins(3, maxExpiredPins+1, 0))
	expect("one pin over the cap", value, slices.Concat(pins(2, 3, 0), pins(1, 2, 0), pins(3, maxExpiredPins+1, 0)))
	value = AppendExpired(value, pins(5000, 6000, schemas.MaxIDBytes))
	limit := maxExpiredBytes / (schemas.MaxIDBytes + 1)
	expect("pins with the longest ids", value, pins(6000-limit, 6000, schemas.MaxIDBytes))
	if len(value) > maxExpiredBytes {
		t.Errorf("row of %d bytes, want at most %d", len(value), maxExpiredBytes)
	}
}
