package feature

import (
	"encoding/hex"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

func allPaths() []Path {
	return append(valuePaths(), Path{verbAttribute, "none"}, Path{part: objectEmbedding}, Path{part: actorEmbedding})
}

func TestARowHasWhatTheActionHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := action().Draw(t, "action")
		r := row{actor: []byte(a.Actor)}
		if err := r.decode(appendAction([]byte{}, &a)); err != nil {
			t.Fatal(err)
		}
		for _, p := range allPaths() {
			if want, got := p.valuesOf(&a), r.values(p); !slices.EqualFunc(want, got, func(w string, g []byte) bool { return w == string(g) }) {
				t.Errorf("%s: got %q, want %q", p, got, want)
			}
			want, got := p.vectorOf(&a), r.vector(p)
			if len(got) != 4*len(want) {
				t.Fatalf("%s: got %d bytes of vector, want %d elements", p, len(got), len(want))
			}
			for i, x := range want {
				if element(got, i) != float64(x) {
					t.Errorf("%s[%d]: got %v, want %v", p, i, element(got, i), x)
				}
			}
		}
	})
}

// The bytes on disk. Changing them requires another actionVersion.
func TestRowBytes(t *testing.T) {
	a := schemas.EnrichedAction{
		Verb: "save", Object: "pin:1",
		VerbAttributes: schemas.VerbAttributes{Board: "board:1", Surface: "home", Attributes: map[string]string{"b": "2", "a": "1"}},
		ObjectAttributes: schemas.ObjectAttributes{
			Facets:    schemas.Facets{Author: "user:2", Interests: []schemas.InterestID{"interest:1", "interest:1"}},
			Embedding: []float32{1},
		},
		ActorAttributes: schemas.ActorAttributes{Attributes: map[string]string{"c": ""}},
	}
	const want = "01" + "0473617665" + "0570696e3a31" + // save pin:1
		"07626f6172643a31" + "04686f6d65" + // board:1 home
		"06757365723a32" + "00" + // user:2, no board
		"0b0a696e7465726573743a31" + "00" + // interest:1, none of the actor
		"080161013101620132" + "00" + "03016300" + // a=1 b=2, none, c=
		"040000803f" + "00"
	if got := hex.EncodeToString(appendAction(nil, &a)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeysSortAsScansReadThem(t *testing.T) {
	keys := [][]byte{
		actionKey(nil, "user:1", 86_399_999, "b"),
		actionKey(nil, "user:1", 0, "ab"),
		actionKey(nil, "user:1", 0, "a"),
		actionKey(nil, "user:10", 5, "z"),
		actionKey(nil, "user:1", 86_400_001, "a"),
		actionKey(nil, "user:1", 86_400_000, "b"),
	}
	if !slices.IsSortedFunc(keys, func(a, b []byte) int { return slices.Compare(a, b) }) {
		t.Errorf("not in order: %x", keys)
	}
	before, after := actionKey(nil, "user:1", -1, "a"), actionKey(nil, "user:1", 0, "a")
	if slices.Compare(before, after) >= 0 {
		t.Error("the day before 1970 does not sort before")
	}
}

func FuzzDecodeRow(f *testing.F) {
	for seed := range 10 {
		e := action().Example(seed)
		f.Add(string(appendAction(nil, &e)))
	}
	f.Add("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, s string) {
		r := row{actor: []byte("user:1")}
		if r.decode([]byte(s)) != nil {
			return
		}
		for _, p := range allPaths() {
			for i := range len(r.vector(p)) / 4 {
				element(r.vector(p), i)
			}
			if len(r.values(p)) > len(s)+1 {
				t.Errorf("%s: %d values out of %d bytes", p, len(r.list), len(s))
			}
		}
		_, _, _ = decodeCard(s)
		_, _ = decodeAttributes(s)
		_, _ = decodeVector(s)
		for rest, more := s, true; more && rest != ""; {
			_, rest, more = cutStep(rest)
		}
	})
}

func TestEveryTruncationOfARowIsCorrupt(t *testing.T) {
	a := action().Example(3)
	whole := appendAction(nil, &a)
	var r row
	for n := range len(whole) {
		if err := r.decode(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were decoded", n, len(whole))
		}
	}
	if err := r.decode(append(whole, 0)); err == nil {
		t.Error("a byte too many was decoded")
	}
}

func TestEveryTruncationOfAPinIsCorrupt(t *testing.T) {
	card := appendCard(nil, &schemas.Card{PinVersion: schemas.PinVersion{
		Facets: schemas.Facets{Author: "user:1", Interests: []schemas.InterestID{"interest:1"}}}})
	attributes := appendAttributes(nil, map[string]string{"a": "b"})
	vector := appendVector(nil, []float32{1, 2})
	rows := map[string]struct {
		whole  []byte
		decode func(string) error
	}{
		"card":       {card, func(s string) error { _, _, err := decodeCard(s); return err }},
		"attributes": {attributes, func(s string) error { _, err := decodeAttributes(s); return err }},
		"vector":     {vector, func(s string) error { _, err := decodeVector(s); return err }},
	}
	for name, r := range rows {
		for n := range len(r.whole) {
			if r.decode(string(r.whole[:n])) == nil {
				t.Errorf("%s: %d of %d bytes were decoded", name, n, len(r.whole))
			}
		}
		if err := r.decode(string(r.whole)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.decode(string(r.whole)+"\x00") == nil {
			t.Errorf("%s: a byte too many was decoded", name)
		}
	}
}

// A day holds the last version of each step, in the order of steps, whatever the order of writes.
func TestADayHoldsTheLastOfEachStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d day
		want := map[uint64]string{}
		for i := range rapid.IntRange(0, 30).Draw(t, "puts") {
			number := rapid.Uint64Range(0, uint64(stepsADay)-1).Draw(t, "number")
			c := &schemas.ItemCounts{Counts: map[string]int64{"save": int64(i + 1)}, Actors: schemas.Sketch{1, byte(i)}}
			var err error
			if d, err = d.put(number, c); err != nil {
				t.Fatal(err)
			}
			want[number] = string(appendCounts(nil, c.Counts)) + string(c.Actors)
		}
		last := -1
		for rest := string(d); rest != ""; {
			s, after, ok := cutStep(rest)
			if !ok || int(s.number) <= last || want[s.number] != s.counts+s.actors {
				t.Fatalf("step %d after %d: %q, want %q", s.number, last, s.counts+s.actors, want[s.number])
			}
			last, rest = int(s.number), after
			delete(want, s.number)
		}
		if len(want) > 0 {
			t.Fatalf("%d steps are not there", len(want))
		}
	})
}
