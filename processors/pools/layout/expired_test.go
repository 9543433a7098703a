package layout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestOldestThatWereGivenUpAreForgotten(t *testing.T) {
	pins := func(from, to, long int) (list []schemas.PinID) {
		for n := from; n < to; n++ {
			id := fmt.Sprintf("pin:%04d", n)
			list = append(list, schemas.PinID(id+strings.Repeat("x", max(0, long-len(id)))))
		}
		return list
	}
	expect := func(when string, value []byte, want []schemas.PinID) {
		t.Helper()
		if diff := gocmp.Diff(want, ParseExpired(value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	value := AppendExpired(nil, pins(0, 3, 0))
	expect("some", value, pins(0, 3, 0))
	value = AppendExpired(value, pins(1, 2, 0))
	expect("one once more", value, slices.Concat(pins(0, 1, 0), pins(2, 3, 0), pins(1, 2, 0)))
	value = AppendExpired(value, pins(3, maxExpiredPins+1, 0))
	expect("one too many", value, slices.Concat(pins(2, 3, 0), pins(1, 2, 0), pins(3, maxExpiredPins+1, 0)))
	value = AppendExpired(value, pins(5000, 6000, schemas.MaxIDBytes))
	most := maxExpiredBytes / (schemas.MaxIDBytes + 1)
	expect("the longest", value, pins(6000-most, 6000, schemas.MaxIDBytes))
	if len(value) > maxExpiredBytes {
		t.Errorf("a row of %d bytes", len(value))
	}
}
