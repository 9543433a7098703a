package rows

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A store is given the newest write of each row last, whatever the keys have in common.
func TestBatchIsWrittenInTheOrderOfItsKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBatch(1)
		owner := rapid.StringMatching(`[ab]{1,3}`)
		row := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 12)
		type written struct {
			key   string
			write int32
		}
		var want []written
		for i := range rapid.IntRange(1, 30).Draw(t, "writes") {
			name, rest := owner.Draw(t, "owner"), row.Draw(t, "row")
			if rapid.IntRange(0, 9).Draw(t, "reserved") == 0 {
				name = ""
			}
			b.put(b.log(name), name, rest, nil, false)
			want = append(want, written{name + "\x00" + string(rest), int32(i)})
		}
		slices.SortStableFunc(want, func(x, y written) int { return strings.Compare(x.key, y.key) })
		for i, k := range b.inOrder(nil) {
			if k.write != want[i].write {
				t.Fatalf("write %d of the store is %d, want %d, of %q", i, k.write, want[i].write, want[i].key)
			}
		}
	})
}
