package feature

import (
	"encoding/hex"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestDecodeAction_ReadsWholeRowOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := action().Draw(t, "action")
		row := appendAction(nil, &want)
		got := schemas.EnrichedAction{Actor: want.Actor, Timestamp: want.Timestamp} // which are in the key
		if err := decodeAction(row, &got, ^partSet(0)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		cut := row[:rapid.IntRange(0, len(row)-1).Draw(t, "cut")]
		for _, torn := range [][]byte{cut, append(row, 0)} {
			if err := decodeAction(torn, &got, ^partSet(0)); err == nil {
				t.Errorf("%x of %x was decoded", torn, row)
			}
		}
	})
}

// The bytes on disk. Changing them requires another rowVersion.
func TestAppendAction_Bytes(t *testing.T) {
	a := schemas.EnrichedAction{
		Verb: "save", Object: "pin:1",
		VerbAttributes: schemas.VerbAttributes{Board: "board:1", Surface: "home", Attributes: map[string]string{"b": "2", "a": "1"}},
		ObjectAttributes: schemas.ObjectAttributes{
			Facets: schemas.Facets{Author: "user:2", Interests: []schemas.InterestID{"interest:1"}}, Embedding: []float32{1},
		},
		ActorAttributes: schemas.ActorAttributes{Attributes: map[string]string{"c": ""}},
	}
	const want = "02" + "0473617665" + "0570696e3a31" + // save pin:1
		"07626f6172643a31" + "04686f6d65" + // board:1 home
		"06757365723a32" + "00" + "010a696e7465726573743a31" + // user:2, no board, interest:1
		"00" + "0201610131016201" + "32" + "00" + "01016300" + // no interests of the actor; a=1 b=2, none, c=
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
		f.Add(appendAction(nil, &e))
	}
	f.Add([]byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a schemas.EnrichedAction
		if err := decodeAction(b, &a, ^partSet(0)); err == nil && len(a.ObjectAttributes.Attributes) > len(b) {
			t.Errorf("%d attributes out of %d bytes", len(a.ObjectAttributes.Attributes), len(b))
		}
		readCard(packed.NewReader(b))
		readSteps(packed.NewReader(b))
	})
}

// A day holds the last version of each step, in the order of steps, whatever the order of writes.
func TestPutStep_KeepsLastOfEachStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps []step
		want := map[int64]int64{}
		for i := range rapid.Int64Range(0, 30).Draw(t, "puts") {
			number := rapid.Int64Range(0, int64(dayMillis/stepMillis)-1).Draw(t, "number")
			steps = putStep(steps, step{number: number, counts: positive(map[string]int64{"save": i + 1, "click": 0})})
			want[number] = i + 1
		}
		r := packed.NewVersionReader(appendSteps(nil, steps), rowVersion)
		read := readSteps(r)
		got := map[int64]int64{}
		for _, s := range read {
			got[s.number] = s.counts[0].n
		}
		sorted := slices.IsSortedFunc(read, func(a, b step) int { return int(a.number - b.number) })
		if r.End() != nil || !sorted || !maps.Equal(want, got) {
			t.Errorf("got %v, %v, want %v in order", read, r.End(), want)
		}
	})
}
