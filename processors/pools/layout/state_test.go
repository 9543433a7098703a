package layout

import (
	"fmt"
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestState_ShowGivesNewItemsDensePositions(t *testing.T) {
	st := State{Head: 7, ServedBy: []string{"before"}, Memory: schemas.Memory{Mix: map[string]float64{"following": 3}}}
	rec := &schemas.Served{ID: "now", User: "user:me", Time: 5, Memory: schemas.Memory{Mix: map[string]float64{"following": 4}}}
	for _, pin := range []schemas.PinID{"pin:a", "pin:seen", "pin:b", "pin:a"} {
		rec.Items = append(rec.Items, schemas.ServedItem{Pin: pin})
	}
	added, repeats := st.Show(rec, map[schemas.PinID]bool{"pin:seen": true})
	want := &schemas.FeedEntries{User: "user:me", First: 8, Time: 5, Items: []schemas.ServedItem{{Pin: "pin:b"}, {Pin: "pin:a"}}}
	expect.NoDiff(t, added, want, "entries")
	expect.Equal(t, repeats, 2, "repeats")
	after := State{Head: 9, ServedBy: []string{"now", "before"}, Memory: schemas.Memory{Mix: map[string]float64{"following": 4}}}
	expect.NoDiff(t, st, after, "state")
}

func TestState_KeepsNewestServedIDs(t *testing.T) {
	var st State
	for i := range 2 * servedKept {
		st.Show(&schemas.Served{ID: fmt.Sprint(i)}, nil)
	}
	if !st.Applied(fmt.Sprint(servedKept)) || st.Applied(fmt.Sprint(servedKept-1)) || len(st.ServedBy) != servedKept {
		t.Errorf("ids %v", st.ServedBy)
	}
}

func TestState_SeenTrimmedBefore(t *testing.T) {
	var st State
	expect.Equal(t, st.SeenTrimmedBefore(), math.MinInt64, "SeenTrimmedBefore")
	st.SeenTrimmed, st.Refused = 1, -10
	st.Refuse(-5)
	st.Refuse(-7)
	expect.Equal(t, st.SeenTrimmedBefore(), -5, "SeenTrimmedBefore")
}
