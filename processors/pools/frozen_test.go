package pools

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// Frozen entries are found as they were added, visit by visit or, in rows of former builds, one by one: from any head down,
// and one by one, whether or not the oldest are gone.
func TestFrozenEntriesAreFound(t *testing.T) {
	w := newWhyDesk(t, nil)
	stream := w.g.deps.Streams.FeedEntries
	same := cmpopts.EquateEmpty()
	rapid.Check(t, func(t *rapid.T) {
		table, all, heads := memory{}, []schemas.FeedEntry{}, []int64{0}
		for _, size := range rapid.SliceOfN(rapid.IntRange(1, 5), 0, 8).Draw(t, "visits") {
			items := make([]schemas.ServedItem, size)
			for i := range items {
				items[i] = schemas.ServedItem{Pin: schemas.PinID(rapid.StringMatching("pin:[a-z]{1,3}").Draw(t, "pin"))}
			}
			added := schemas.FeedEntriesOf(owner, schemas.Micros(len(all)), int64(len(all)+1), items)
			value, err := stream.Encode(added)
			if err != nil {
				t.Fatal(err)
			}
			table[string(positionRow(rowFrozen, added.Last()))] = value
			all, heads = slices.AppendSeq(all, added.All()), append(heads, added.Last())
		}
		gone := int64(0) // the last position of the rows taken away
		if len(all) > 0 && rapid.Bool().Draw(t, "thaw") {
			to := rapid.Int64Range(0, int64(len(all))).Draw(t, "to")
			for name := range table {
				if at := positionOf([]byte(name)); at <= to {
					delete(table, name)
					gone = max(gone, at)
				}
			}
		}
		for i, want := range all {
			got, err := frozenAt(table, stream, want.Position)
			if err != nil || want.Position > gone && !cmp.Equal(got, &want, same) || want.Position <= gone && got != nil {
				t.Fatalf("at %d of %d: got %+v, %v; up to %d are gone", i+1, len(all), got, err, gone)
			}
		}
		most := rapid.IntRange(1, 20).Draw(t, "most")
		head := rapid.SampledFrom(heads).Draw(t, "head")
		want := slices.Clone(all[min(gone, head):head])
		slices.Reverse(want)
		want = want[:min(len(want), most)]
		got, err := frozenFrom(table, stream, head, most)
		if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
			t.Fatalf("%v; the newest %d (-want +got):\n%s", err, most, diff)
		}
	})
}
