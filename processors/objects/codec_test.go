package objects

import (
	"cmp"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows outlive the program that wrote them, so their bytes must not change.
func TestPinRowGolden(t *testing.T) {
	p := &pin{
		lastVersion: 1_700_000_000_000_001,
		deletedBy:   "e-9",
		origin:      origin{moment{1_600_000_000_000_000, "e-1"}, "user:ada", 1.5},
		head:        head{facets: schemas.Facets{Board: "board:pots", Interests: []schemas.InterestID{"interest:clay"}}, title: "A pot", link: "https://example.com/pot"},
		kept:        []moment{{1_700_000_000_000_000, "e-2"}, {-1, "e-1"}},
		notified:    []schemas.Followee{"user:ada", "board:pots", "interest:clay"},
	}
	golden.Text(t, "testdata/pin.hex", hex.Dump(packed.Encode(p)))
}

func TestAppendTime_Sorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := packed.AppendOrdered(nil, schemas.Micros(a)), packed.AppendOrdered(nil, schemas.Micros(b))
		expect.Equal(t, strings.Compare(string(x), string(y)), cmp.Compare(a, b), "order of the names of %d and %d", a, b)
		expect.Equal(t, heldSince(append([]byte{heldRow}, x...)), schemas.Micros(a), "decoded time")
	})
}
