package related_test

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A deleted pin keeps one small row and is no pin's neighbor. Later actions and saves that contain it do not change that.
func TestCard_DeletionRemovesNeighborsOnBothSides(t *testing.T) {
	t.Parallel()
	r := newRig(t, related.DefaultConfig())
	act := func(on, near int) {
		r.send(&schemas.RelatedRequest{
			User: "user:1", Weight: 1, Time: base, Pin: pin(on), Near: []schemas.Near{{Neighbor: pin(near), Weight: 1, Time: base}},
		})
	}
	for other := 2; other < 6; other++ {
		act(1, other)
	}
	act(2, 3)
	r.WaitIdle()
	if got := len(r.neighbors("pin:1", 100)); got != 4 {
		t.Fatalf("%d neighbors before the deletion, want 4", got)
	}
	card := func(n int, deleted bool) {
		id := schemas.PinID(pin(n).ID)
		proctest.Publish(r.Wire, r.Streams.PinCards, string(id), &schemas.Card{PinVersion: schemas.PinVersion{Pin: id, Version: 200, PinContent: schemas.PinContent{Deleted: deleted}}})
	}
	card(1, true)
	card(1, true) // a repeat changes nothing
	card(3, false)
	r.WaitIdle()
	expect := func(when string) {
		t.Helper()
		if got := len(r.Rows(topics.Related, "pin:1")); got != 1 {
			t.Errorf("%s: the deleted pin has %d rows, want 1", when, got)
		}
		for of, want := range map[schemas.ID]int{"pin:1": 0, "pin:2": 1, "pin:3": 1, "pin:4": 0} {
			if got := r.neighbors(of, 100); len(got) != want {
				t.Errorf("%s: neighbors of %s: %+v, want %d", when, of, got, want)
			}
		}
	}
	expect("deleted")
	act(1, 4) // late: after the deletion
	act(4, 1) // the user acted on the deleted pin before it was deleted
	for _, n := range []int{1, 4} {
		r.send(&schemas.BoardSave{Board: "board:b", Time: base, Weight: 1, Pin: pin(n)})
	}
	r.WaitIdle()
	expect("after later actions")
	if got := len(r.Rows(topics.Related, "pin:4")); got != 1 {
		t.Errorf("%d rows of a pin without neighbors, want only its strength", got)
	}
}
