package actors

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/packed"
)

// testFormat compares the bytes of a row with those of its version. A change of the bytes needs another version.
func testFormat[T any, R packed.Row[T]](t *testing.T, row T, want string) {
	t.Helper()
	b := packed.Encode[T, R](&row)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%+v is written as %s, want %s", row, got, want)
	}
	allowed := cmp.AllowUnexported(facet{}, decayed{}, sent{}, recentAction{})
	if got, err := packed.Decode[T, R](b); err != nil || !cmp.Equal(got, row, allowed) {
		t.Errorf("%+v is read as %+v, %v", row, got, err)
	}
}

func TestRows_KeepTheirFormat(t *testing.T) {
	testFormat(t, facet{decayed: decayed{sum: 1.5, time: 300}, told: 2, moved: 1, wakes: -1},
		"02"+"3ff8000000000000"+"d804"+"4000000000000000"+"02"+"01")
	testFormat(t, sent{at: 1, due: 2, facets: 70_000}, "02"+"02"+"04"+"e0c508")
	testFormat(t, recentActions{{time: 1, encoded: []byte{7, 8}}, {time: -1, encoded: []byte{9}}}, "02"+"02"+"02"+"020708"+"01"+"0109")
}
