package layout

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// The index has every pin at its position, also in rows of one pin. LoadRecentlySeen loads the newest pins except removed ones,
// also if the limit is inside a visit.
func TestSeenIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, all := memrows.Table{}, []schemas.PinID{}
		for _, size := range rapid.SliceOfN(rapid.IntRange(1, 5), 1, 8).Draw(t, "visits") {
			var visit []byte
			for range size {
				all = append(all, schemas.PinID(fmt.Sprint("pin:", len(all))))
				visit = AppendIndexed(visit, all[len(all)-1])
			}
			table[string(PositionRow(KindSeenIndex, int64(len(all))))] = visit
		}
		end := int64(len(all))
		from := rapid.Int64Range(1, end).Draw(t, "from")
		to := rapid.Int64Range(from, end+1).Draw(t, "to")
		list := must.Get(IndexedBetween(table, from, to))(t)
		var pins []schemas.PinID
		for i, p := range list {
			_, ends := table[string(PositionRow(KindSeenIndex, p.Position))]
			if pins = append(pins, p.Pin); p.Position != from+int64(i) || p.Last != ends {
				t.Fatalf("from %d to %d of %d: %+v", from, to, end, list)
			}
		}
		expect.NoDiff(t, pins, all[from-1:min(to, end)], "from %d to %d of %d", from, to, end)
		v := &View{Table: table, State: State{Head: end, SeenTrimmed: rapid.Int64Range(0, end).Draw(t, "trimmed")}}
		n := rapid.IntRange(1, 20).Draw(t, "n")
		must.OK(t, v.LoadRecentlySeen(n))
		want := all[max(v.State.SeenTrimmed, end-int64(n)):]
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(v.RecentlySeen)), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("newest %d of %d, %d trimmed (-want +got):\n%s", n, end, v.State.SeenTrimmed, diff)
		}
	})
}
