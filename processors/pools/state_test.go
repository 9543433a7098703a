package pools

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestShowGivesDensePositionsToWhatIsNew(t *testing.T) {
	st := state{Head: 7, ServedBy: []string{"before"}, Memory: schemas.Memory{Mix: map[string]float64{"following": 3}}}
	rec := &schemas.Served{ID: "now", User: owner, Time: 5, Memory: schemas.Memory{Mix: map[string]float64{"following": 4}}}
	for _, pin := range []schemas.PinID{"pin:a", "pin:seen", "pin:b", "pin:a"} {
		rec.Items = append(rec.Items, schemas.ServedItem{Pin: pin})
	}
	added, repeats := st.show(rec, map[schemas.PinID]bool{"pin:seen": true})
	want := &schemas.FeedEntries{User: owner, First: 8, Time: 5, ServedItem: schemas.ServedItem{Pin: "pin:b"}, More: []schemas.ServedItem{{Pin: "pin:a"}}}
	if diff := cmp.Diff(want, added); diff != "" || repeats != 2 {
		t.Errorf("%d repeats, want 2; entries (-want +got):\n%s", repeats, diff)
	}
	after := state{Head: 9, ServedBy: []string{"now", "before"}, Memory: schemas.Memory{Mix: map[string]float64{"following": 4}}}
	if diff := cmp.Diff(after, st); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestStateRemembersTheNewestServed(t *testing.T) {
	var st state
	for i := range 2 * servedKept {
		st.show(&schemas.Served{ID: fmt.Sprint(i)}, nil)
	}
	if !st.applied(fmt.Sprint(servedKept)) || st.applied(fmt.Sprint(servedKept-1)) || len(st.ServedBy) != servedKept {
		t.Errorf("remembers %v", st.ServedBy)
	}
}

func TestNothingIsRefusedBeforeSomethingIsForgotten(t *testing.T) {
	var st state
	if st.refuses(-1) {
		t.Error("a pin from before 1970 is refused")
	}
	st.Unseen, st.Refused = 1, -10
	st.refuse(-5)
	st.refuse(-7)
	if !st.refuses(-6) || st.refuses(-5) {
		t.Errorf("refuses below %d, want -5", st.Refused)
	}
}
