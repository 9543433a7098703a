package interests

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// testFormat compares the bytes of a row with those of its version. A change of the bytes needs another version.
func testFormat[T any, R packed.Row[T]](t *testing.T, row T, want string) {
	t.Helper()
	b := packed.Encode[T, R](&row)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%+v encodes to %s, want %s", row, got, want)
	}
	if got, err := packed.Decode[T, R](b); err != nil || !cmp.Equal(got, row) {
		t.Errorf("%+v decodes to %+v, %v", row, got, err)
	}
}

func TestRows_KeepTheirFormat(t *testing.T) {
	testFormat(t, rows.Number(-3), "01"+"05")
	testFormat(t, pinTerms{
		Version: 1, Author: "a", Created: 2, Interests: []schemas.InterestID{"i"}, Terms: []string{"t", "u"}, Deleted: true,
	}, "01"+"02"+"0161"+"04"+"010169"+"0201740175"+"01")
	testFormat(t, shown{[]impression{{Pin: "p", Source: "s", Time: 1}}}, "01"+"01"+"0170"+"0173"+"02")
	testFormat(t, term{Pins: 1, MaxError: 2, People: 3, Recent: 1}, "01"+"020406"+"3ff0000000000000")
	testFormat(t, userInterest{
		Strength: 1, Evidence: []schemas.Evidence{{Pin: "p", Verb: "v", Weight: 1, Time: 1}},
	}, "01"+"3ff0000000000000"+"01"+"0170"+"0176"+"3ff0000000000000"+"02")
	none := userInterest{Strength: decay.None()}
	if got, err := packed.Decode[userInterest](packed.Encode(&none)); err != nil || !math.IsInf(float64(got.Strength), -1) {
		t.Errorf("got %v, %v, want the sum of no weights", got.Strength, err)
	}
}
