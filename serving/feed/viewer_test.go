package feed

import (
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// viewedRig returns a rig with a list of six pins of different authors, boards and interests. All of them are also related
// to one pin. Blocks and deletions withhold all but the last from the viewer. A deletion withholds one of them from
// every caller.
func viewedRig(t *testing.T) *rig {
	r := newRig(t, nil)
	r.deps.Deleted = deletedUsers{"user:deleted": true}
	facets := []schemas.Facets{
		{Author: "user:blocker"}, {Author: "user:blocked"}, {Author: "user:other", Board: "board:blocked"},
		{Author: "user:other", Interests: []schemas.InterestID{"interest:blocked"}}, {Author: "user:deleted"}, {Author: viewer},
	}
	var neighbors fakeNeighbors
	for i, f := range facets {
		p := schemas.PinVersion{Pin: schemas.PinID(fmt.Sprint("pin:", i)), PinContent: schemas.PinContent{Facets: f}}
		r.store.lists["interest:x"] = append(r.store.lists["interest:x"], p)
		r.store.cards[p.Pin] = schemas.Card{PinVersion: p}
		neighbors = append(neighbors, p.Pin)
	}
	r.deps.Neighbors = neighbors
	r.store.edge("user:blocker", schemas.BlockedEdge, true)
	for _, id := range []schemas.ID{"user:blocked", "board:blocked", "interest:blocked"} {
		r.store.edge(id, schemas.BlockEdge, true)
	}
	return r
}

func TestList_WithholdsWhatBlocksHideFromViewer(t *testing.T) {
	r := viewedRig(t)
	for viewing, want := range map[schemas.UserID]string{viewer: "5", "": "0 1 2 3 5"} {
		for _, limit := range []int{1, 2, 10} {
			var got []Item
			cursor, pages := "", 0
			for {
				page := must.Get(r.List(t.Context(), "interest:x", viewing, cursor, limit))(t)
				for _, p := range page.Items {
					got = append(got, Item{Pin: p})
				}
				if pages++; page.Next == nil || pages > 10 {
					break
				}
				cursor = *page.Next
			}
			same(t, fmt.Sprintf("viewer %q, limit %d", viewing, limit), names(got), want)
		}
	}
}

// The list of a user with a block in either direction looks like that of a user without publications.
func TestList_OfBlockerLooksEmpty(t *testing.T) {
	r := viewedRig(t)
	for _, followee := range []schemas.Followee{"user:blocker", "user:blocked", "board:blocked", "interest:blocked"} {
		r.store.lists[followee] = nil
		for i := range DefaultConfig().MaxSkippedItems + 1 { // more than MaxSkippedItems
			p := schemas.PinVersion{Pin: schemas.PinID(fmt.Sprint("pin:of-", i)), PinContent: schemas.PinContent{Facets: schemas.Facets{Author: schemas.UserID(followee)}}}
			r.store.lists[followee] = append(r.store.lists[followee], p)
		}
		nothing := must.Get(r.List(t.Context(), "user:silent", viewer, "", 10))(t)
		page, err := r.List(t.Context(), followee, viewer, "", 10)
		checkAnswer(t, string(followee), page, nothing, err)
		page, err = r.List(t.Context(), followee, "", "", 10)
		checkAnswer(t, string(followee)+", without a viewer", len(page.Items), 10, err)
	}
}

func TestRelatedPins_WithholdsWhatBlocksHideFromViewer(t *testing.T) {
	r := viewedRig(t)
	for viewing, want := range map[schemas.UserID]int{viewer: 1, "": 5} {
		page, err := r.RelatedPins(t.Context(), "pin:x", viewing, 10)
		checkAnswer(t, fmt.Sprintf("viewer %q", viewing), len(page.Items), want, err)
	}
}

// Items of unknown visibility are not shown to a viewer.
func TestLists_EmptyForViewerWithoutTheStore(t *testing.T) {
	r := viewedRig(t)
	r.store.facts.err = errFake
	list, err := r.List(t.Context(), "interest:x", viewer, "", 10)
	checkAnswer(t, "list", len(list.Items), 0, err)
	related, err := r.RelatedPins(t.Context(), "pin:x", viewer, 10)
	checkAnswer(t, "related", len(related.Items), 0, err)
	same(t, "degraded", related.Degraded, []string{"store"})
	expect.AtLeast(t, r.store.facts.hits.Load(), 1, "hits of the fault")
}
