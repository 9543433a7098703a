package objects

import (
	"cmp"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

var update = flag.Bool("update", false, "write the golden files")

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
	golden(t, "pin.hex", packed.Encode(p))
}

func TestAppendTime_Sorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := packed.AppendOrdered(nil, schemas.Micros(a)), packed.AppendOrdered(nil, schemas.Micros(b))
		if got, want := strings.Compare(string(x), string(y)), cmp.Compare(a, b); got != want {
			t.Errorf("names of %d and %d compare as %d, want %d", a, b, got, want)
		}
		if got := heldSince(append([]byte{heldRow}, x...)); got != schemas.Micros(a) {
			t.Errorf("decoded time: got %d, want %d", got, a)
		}
	})
}

func golden(t *testing.T, name string, value []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got := hex.Dump(value)
	if *update {
		must.OK(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.OK(t, err)
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("bytes of %s changed: stored rows need a new format number (-want +got):\n%s", name, diff)
	}
}
