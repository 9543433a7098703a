package feature

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// everything returns reads of all parts of the generated actions.
func everything() *reads {
	r := &reads{parts: ^uint32(0)}
	for _, p := range []part{objectAttribute, actorAttribute, verbAttribute} {
		r.keys[p] = []string{"x", "x.y", "author"}
	}
	return r
}

func TestActionReader_RejectsTruncatedRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newActionReader("user:1", everything())
		for range 2 { // the second row replaces the first
			want := action().Draw(t, "action")
			row := appendAction(nil, &want)
			r.Timestamp = want.Timestamp // which is in the key, as the actor
			must.OK(t, r.read(row))
			for _, a := range []*map[string]string{&want.VerbAttributes.Attributes, &want.ObjectAttributes.Attributes, &want.ActorAttributes.Attributes} {
				maps.DeleteFunc(*a, func(key, _ string) bool { return !slices.Contains(r.reads.keys[objectAttribute], key) })
			}
			same(t, "decoded action", want, r.EnrichedAction, cmpopts.EquateEmpty())
			cut := row[:rapid.IntRange(0, len(row)-1).Draw(t, "cut")]
			for _, torn := range [][]byte{cut, append(row, 0)} {
				expect.Error(t, r.read(torn), "row is truncated or corrupt", "%x of %x", torn, row)
			}
		}
	})
}

// A reader decodes only the paths that are read.
func TestActionReader_ReadsWantedPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newActionReader("user:1", &reads{})
		paths := rapid.SliceOfN(rapid.SampledFrom(valuePaths()), 1, 3).Draw(t, "paths")
		for _, p := range paths {
			r.reads.add(p)
		}
		for range 2 {
			want := action().Draw(t, "action")
			must.OK(t, r.read(appendAction(nil, &want)))
			for _, p := range paths {
				same(t, fmt.Sprint(p), p.appendValues(nil, &want), p.appendValues(nil, &r.EnrichedAction))
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
	const want = "04" + "0473617665" + "0570696e3a31" + // save pin:1
		"07626f6172643a31" + "04686f6d65" + // board:1 home
		"14" + "01" + "06757365723a32" + "010a696e7465726573743a31" + // user:2, no board, interest:1
		"00" + "080161013101620132" + "00" + "03016300" + // no interests of the actor; a=1 b=2, none, c=
		"040000803f" + "00"
	expect.Equal(t, hex.EncodeToString(appendAction(nil, &a)), want, "encoded action")
}

func TestKeys_SortForScans(t *testing.T) {
	keys := [][]byte{
		actionKey(nil, "user:1", 86_399_999, "b"),
		actionKey(nil, "user:1", 0, "ab"),
		actionKey(nil, "user:1", 0, "a"),
		actionKey(nil, "user:10", 5, "z"),
		actionKey(nil, "user:1", 86_400_001, "a"),
		actionKey(nil, "user:1", 86_400_000, "b"),
	}
	expect.True(t, slices.IsSortedFunc(keys, func(a, b []byte) int { return slices.Compare(a, b) }), "keys are in order: %x", keys)
	before, after := actionKey(nil, "user:1", -1, "a"), actionKey(nil, "user:1", 0, "a")
	expect.True(t, slices.Compare(before, after) < 0, "the day before 1970 sorts before it")
}

func FuzzDecodeRow(f *testing.F) {
	for seed := range 10 {
		e := action().Example(seed)
		f.Add(appendAction(nil, &e))
	}
	f.Add([]byte("\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = newActionReader("user:1", everything()).read(b)
		readFacets(packed.NewReader(b))
		readSteps(packed.NewReader(b))
	})
}

// A day holds the last version of each step, in the order of steps, in any order of writes.
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
