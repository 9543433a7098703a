package actors

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// Later versions of the program must be able to read these bytes.
func TestRowsGolden(t *testing.T) {
	f := facet{decayed: decayed{sum: 1.5, time: 1_700_000_000_000_000}, told: 2, moved: 1_700_000_000_000_001, wakes: -1}
	s := sent{at: 1_700_000_000_000_000, due: 1_700_000_001_000_000, facets: 70_000}
	recent := []recentAction{{time: 1_700_000_000_000_000, encoded: []byte{7, 8}}, {time: -1}}
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"affinity", f.encode(), "013ff800000000000000060a24181e40004000000000060a24181e4001ffffffffffffffff"},
		{"no affinity", facet{told: unmoved}.encode(), "01000000000000000000000000000000003f80000000000000000000000000000000000000"},
		{"sent", s.encode(), "0100060a24181e400000060a24182d824000011170"},
		{"recent actions", encodeRecent(recent), "010200060a24181e4000020708ffffffffffffffff00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := hex.EncodeToString(tt.got); got != tt.want {
				t.Errorf("got  %s\nwant %s: another layout needs another format number", got, tt.want)
			}
		})
	}
}

func TestRowsReadBackWholeOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Map(rapid.Int64(), func(n int64) schemas.Micros { return schemas.Micros(n) })
		f := facet{
			decayed: decayed{rapid.Float64().Draw(t, "sum"), micros.Draw(t, "time")},
			told:    rapid.Float32().Draw(t, "told"), moved: micros.Draw(t, "moved"), wakes: micros.Draw(t, "wakes"),
		}
		s := sent{at: micros.Draw(t, "at"), due: micros.Draw(t, "due"), facets: rapid.IntRange(0, 1<<31).Draw(t, "facets")}
		if got, err := decodeFacet(f.encode()); err != nil || got != f {
			t.Errorf("affinity: got %v, %v, want %v", got, err, f)
		}
		if got, err := decodeSent(s.encode()); err != nil || got != s {
			t.Errorf("sent: got %v, %v, want %v", got, err, s)
		}
		r := make([]recentAction, rapid.IntRange(0, 3).Draw(t, "actions"))
		for i := range r {
			r[i] = recentAction{time: micros.Draw(t, "acted"), encoded: rapid.SliceOf(rapid.Byte()).Draw(t, "record")}
		}
		same := func(a, b recentAction) bool { return a.time == b.time && bytes.Equal(a.encoded, b.encoded) }
		if got, err := decodeRecent(encodeRecent(r)); err != nil || !slices.EqualFunc(got, r, same) {
			t.Errorf("recent actions: got %v, %v, want %v", got, err, r)
		}
		refuses(t, encodeRecent(r), func(b []byte) error { _, err := decodeRecent(b); return err })
		refuses(t, f.encode(), func(b []byte) error { _, err := decodeFacet(b); return err })
		refuses(t, s.encode(), func(b []byte) error { _, err := decodeSent(b); return err })
	})
}

func refuses(t *rapid.T, value []byte, decode func([]byte) error) {
	for n := range value {
		if decode(value[:n]) == nil {
			t.Errorf("the first %d of %d bytes: got no error", n, len(value))
		}
	}
	if decode(append(bytes.Clone(value), 0)) == nil {
		t.Error("one byte more: got no error")
	}
	value[0]++
	if decode(value) == nil {
		t.Error("another format: got no error")
	}
}

func TestFacetNames(t *testing.T) {
	for _, name := range []string{"", "f", "s", "ufoo"} {
		if id, ok := facetOf([]byte(name)); ok {
			t.Errorf("%q: got facet %q, want none", name, id)
		}
	}
	if id, ok := facetOf(facetName("board:a")); !ok || id != "board:a" {
		t.Errorf("got %q, %t, want board:a", id, ok)
	}
}
