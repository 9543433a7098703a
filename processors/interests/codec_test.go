package interests

import (
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestRows_KeepTheirFormat(t *testing.T) {
	golden.Row(t, rows.Number(-3), "01"+"05")
	golden.Row(t, pinTerms{
		Version: 1, Author: "a", Created: 2, Interests: []schemas.InterestID{"i"}, Terms: []string{"t", "u"}, Deleted: true,
	}, "01"+"02"+"0161"+"04"+"010169"+"0201740175"+"01")
	golden.Row(t, shown{[]impression{{Pin: "p", Source: "s", Time: 1}}}, "01"+"01"+"0170"+"0173"+"02")
	golden.Row(t, term{Pins: 1, MaxError: 2, People: 3, Recent: 1}, "01"+"020406"+"3ff0000000000000")
	golden.Row(t, userInterest{
		Strength: 1, Evidence: []schemas.Evidence{{Pin: "p", Verb: "v", Weight: 1, Time: 1}},
	}, "01"+"3ff0000000000000"+"01"+"0170"+"0176"+"3ff0000000000000"+"02")
	none := userInterest{Strength: decay.None()}
	if got, err := packed.Decode[userInterest](packed.Encode(&none)); err != nil || !math.IsInf(float64(got.Strength), -1) {
		t.Errorf("got %v, %v, want the sum of no weights", got.Strength, err)
	}
}
