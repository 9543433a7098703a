package generator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// Materialized entries are found as they were added, in rows of a visit or of a single entry. They are found from any head
// down and one by one, also after the oldest rows were deleted.
func TestMaterialized_EntriesAreFound(t *testing.T) {
	w := newWhyFixture(t, nil)
	stream := w.g.deps.Streams.FeedEntries
	same := cmpopts.EquateEmpty()
	rapid.Check(t, func(t *rapid.T) {
		table, all, heads := memrows.Table{}, []schemas.FeedEntry{}, []int64{0}
		for _, size := range rapid.SliceOfN(rapid.IntRange(1, 5), 0, 8).Draw(t, "visits") {
			items := make([]schemas.ServedItem, size)
			for i := range items {
				items[i] = schemas.ServedItem{Pin: schemas.PinID(rapid.StringMatching("pin:[a-z]{1,3}").Draw(t, "pin"))}
			}
			added := &schemas.FeedEntries{User: poolstest.Owner, Time: schemas.Micros(len(all)), First: int64(len(all) + 1), Items: items}
			value := must.Get(stream.Encode(added))(t)
			table[string(layout.PositionRow(layout.KindMaterialized, added.Last()))] = value
			all, heads = slices.AppendSeq(all, added.All()), append(heads, added.Last())
		}
		deletedTo := int64(0) // last position of the deleted rows
		if len(all) > 0 && rapid.Bool().Draw(t, "thaw") {
			to := rapid.Int64Range(0, int64(len(all))).Draw(t, "to")
			for name := range table {
				if at := layout.PositionOf([]byte(name)); at <= to {
					delete(table, name)
					deletedTo = max(deletedTo, at)
				}
			}
		}
		for i, want := range all {
			got, err := materializedAt(table, stream, want.Position)
			if err != nil || want.Position > deletedTo && !cmp.Equal(got, &want, same) || want.Position <= deletedTo && got != nil {
				t.Fatalf("at %d of %d: got %+v, %v; deleted up to %d", i+1, len(all), got, err, deletedTo)
			}
		}
		limit := rapid.IntRange(1, 20).Draw(t, "most")
		head := rapid.SampledFrom(heads).Draw(t, "head")
		want := slices.Clone(all[min(deletedTo, head):head])
		slices.Reverse(want)
		want = want[:min(len(want), limit)]
		got, err := materializedFrom(table, stream, head, limit)
		if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
			t.Fatalf("%v; newest %d (-want +got):\n%s", err, limit, diff)
		}
	})
}

// If no store can report which entries are visible, responses use the recalled entries.
func TestRecall_EmptiesHiddenEntries(t *testing.T) {
	w := newWhyFixture(t, nil) // the user follows user:a
	for _, blocked := range []schemas.ID{"user:blocked", "board:blocked"} {
		w.graph(layout.RegisterBlock, blocked)
	}
	w.graph(layout.RegisterBlockedBy, "user:blocker")
	by := func(author schemas.UserID, board schemas.BoardID) schemas.Facets {
		return schemas.Facets{Author: author, Board: board}
	}
	items := []schemas.ServedItem{
		{Pin: "pin:followed", Source: schemas.Following, Facets: by("user:a", "")},
		{Pin: "pin:of-an-interest", Source: schemas.FromInterest, Facets: by("user:a", "")},
		{Pin: "pin:related", Source: schemas.Related, Facets: by("user:other", "")},
		{Pin: "pin:explored", Source: schemas.Explore, Facets: by("user:other", "")},
		{Source: schemas.Following, Facets: by("user:unfollowed", "")},
		{Source: schemas.Explore, Pool: schemas.Following, Facets: by("user:unfollowed", "")},
		{Source: schemas.Related, Facets: by("user:blocked", "")},
		{Source: schemas.Related, Facets: by("user:blocker", "")},
		{Source: schemas.Following, Facets: by("user:a", "board:blocked")},
		{Source: schemas.Related, Facets: by("user:deleted", "")},
	}
	var want []schemas.PinID
	for i := range items {
		want = append(want, items[i].Pin)
		if items[i].Pin == "" {
			items[i].Pin = poolstest.PinID(i)
		}
	}
	value := must.Get(w.g.deps.Streams.FeedEntries.Encode(&schemas.FeedEntries{User: poolstest.Owner, Time: 11, First: 1, Items: items}))(t)
	w.rows[string(layout.PositionRow(layout.KindMaterialized, int64(len(items))))] = value
	poolstest.SetState(w.rows, layout.State{Head: 10})
	entries, err := visit(t, w.g, "v1").RecentEntries(t.Context())
	if err != nil || len(entries) != len(items) {
		t.Fatalf("got %d entries, %v, want %d", len(entries), err, len(items))
	}
	got := make([]schemas.PinID, len(items))
	for _, e := range entries {
		got[e.Position-1] = e.Pin
	}
	expect.NoDiff(t, got, want, "recalled pins by position")
}
