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
	"github.com/smartfeed/smartfeed/schemas"
)

var update = flag.Bool("update", false, "write the golden files")

func pins() *rapid.Generator[*pin] {
	return rapid.Custom(func(t *rapid.T) *pin {
		text := rapid.StringN(0, 20, 40)
		moments := rapid.Custom(func(t *rapid.T) moment {
			return moment{schemas.Micros(rapid.Int64().Draw(t, "time")), text.Draw(t, "id")}
		})
		p := &pin{
			stamp:     schemas.Version(rapid.Int64().Draw(t, "stamp")),
			deletedBy: text.Draw(t, "deleted by"),
			origin: origin{moments.Draw(t, "origin"), schemas.UserID(text.Draw(t, "author")),
				rapid.Float64Range(0.01, 100).Draw(t, "quality")},
			head: head{board: schemas.BoardID(text.Draw(t, "board")), title: text.Draw(t, "title"), link: text.Draw(t, "link")},
		}
		for range rapid.IntRange(0, 4).Draw(t, "lists") {
			p.head.interests = append(p.head.interests, schemas.InterestID(text.Draw(t, "interest")))
			p.kept = append(p.kept, moments.Draw(t, "kept"))
			p.told = append(p.told, schemas.Followee(text.Draw(t, "told")))
		}
		return p
	})
}

func TestPinRow_ReadsBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := pins().Draw(t, "pin")
		got, err := packed.Decode[pin](packed.Encode(want))
		if err != nil {
			t.Fatal(err)
		}
		allowed := gocmp.AllowUnexported(pin{}, origin{}, head{}, moment{})
		if diff := gocmp.Diff(want, &got, allowed); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzPinRow(f *testing.F) {
	f.Add(packed.Encode(&pin{}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(append(packed.Encode(&pin{})[:12], 0xff, 0xff, 0xff, 0xff, 0x0f))
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := packed.Decode[pin](value)
		if err != nil {
			return
		}
		if _, err := packed.Decode[pin](packed.Encode(&p)); err != nil {
			t.Errorf("what was read cannot be written and read: %v", err)
		}
	})
}

// Rows outlive the program that wrote them, so their bytes must not change.
func TestPinRowGolden(t *testing.T) {
	p := &pin{
		stamp:     1_700_000_000_000_001,
		deletedBy: "e-9",
		origin:    origin{moment{1_600_000_000_000_000, "e-1"}, "user:ada", 1.5},
		head:      head{"board:pots", []schemas.InterestID{"interest:clay"}, "A pot", "https://example.com/pot"},
		kept:      []moment{{1_700_000_000_000_000, "e-2"}, {-1, "e-1"}},
		told:      []schemas.Followee{"user:ada", "board:pots", "interest:clay"},
	}
	golden(t, "pin.hex", packed.Encode(p))
}

func TestRowNamesAreOrderedByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := appendTime(nil, schemas.Micros(a)), appendTime(nil, schemas.Micros(b))
		if got, want := strings.Compare(string(x), string(y)), cmp.Compare(a, b); got != want {
			t.Errorf("names of %d and %d compare as %d, want %d", a, b, got, want)
		}
		if got := heldSince(append([]byte{heldRow}, x...)); got != schemas.Micros(a) {
			t.Errorf("time read back: got %d, want %d", got, a)
		}
	})
}

func golden(t *testing.T, name string, value []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got := hex.Dump(value)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("the layout of %s has changed: readers of stored rows need a new format number (-want +got):\n%s", name, diff)
	}
}
