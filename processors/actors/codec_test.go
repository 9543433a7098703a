package actors

import (
	"encoding/hex"
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
	allowed := cmp.AllowUnexported(facet{}, decay.Amount{}, sent{})
	if got, err := packed.Decode[T, R](b); err != nil || !cmp.Equal(got, row, allowed) {
		t.Errorf("%+v decodes to %+v, %v", row, got, err)
	}
}

func TestRows_KeepTheirFormat(t *testing.T) {
	testFormat(t, facet{Amount: decay.Amount{Value: 1.5, Time: 300}, sentWeight: 2, sentAt: 1, timerAt: -1},
		"02"+"3ff8000000000000"+"d804"+"4000000000000000"+"02"+"01")
	testFormat(t, rows.Number(70_000), "01"+"e0c508")
	testFormat(t, sent{at: 1, due: 2, facets: 70_000}, "02"+"02"+"04"+"e0c508")
	testFormat(t, recentActions{{Neighbor: schemas.Neighbor{ID: "p", Version: 1, Quality: 1, Facets: schemas.Facets{Author: "a"}, Created: 2}, Weight: 1, Time: -1}},
		"04"+"01"+"01"+"3ff0000000000000"+"0170"+"02"+"3ff0000000000000"+"04"+"01"+"0161"+"00")
}
