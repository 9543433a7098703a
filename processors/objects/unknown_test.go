package objects_test

import (
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// publishAll publishes impressions and actions for ids that may or may not have a pin.
func publishAll(w *proctest.Wire, ids ...schemas.PinID) {
	at := now()
	for _, id := range ids {
		for range 6 {
			show(w, shown(at, id))
		}
		proctest.Publish(w, w.Streams.PinActors, string(id), &schemas.PinActor{Pin: id, Time: schemas.MicrosOf(at), Embedding: []float32{1, 2}})
	}
	w.WaitIdle()
}

func kindsOf(w *proctest.Wire, owner schemas.PinID) string {
	var kinds []byte
	for _, r := range w.Rows(topics.Objects, string(owner)) {
		kinds = append(kinds, r.Name[0])
	}
	return string(slices.Compact(kinds))
}

// The exposure and the mean of an id without a create are deleted some time after the last record. Those of known pins are kept.
func TestUnknownIDs_RowsExpire(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	w.Start("a", objects.Group(objects.DefaultConfig(), w.Streams, deletedtest.Of()))
	const unknown, late, pin = schemas.PinID("pin:unknown"), schemas.PinID("pin:late"), schemas.PinID("pin:1")
	proctest.Publish(w, w.Streams.Pins, string(pin), pinAt(schemas.Create, pin, now(), "c"))
	publishAll(w, unknown, late, pin)
	proctest.Publish(w, w.Streams.Pins, string(late), pinAt(schemas.Create, late, now(), "l"))
	w.WaitIdle()
	tick := func(after time.Duration) {
		for _, id := range []schemas.PinID{unknown, late, pin} {
			w.Tick(topics.Objects, string(id), now().Add(after))
		}
		w.WaitIdle()
	}
	if got := kindsOf(w, unknown); got != "mnsx" {
		t.Fatalf("rows of kinds %q of an unknown id, want exposure, mean, counts and their sweep", got)
	}
	tick(96*time.Hour + 10*time.Minute) // a step of counts ends up to five minutes later
	if got := kindsOf(w, unknown); got != "mn" {
		t.Errorf("after the counts expired: rows of kinds %q of an unknown id, want exposure and mean", got)
	}
	tick(98 * time.Hour)
	for id, want := range map[schemas.PinID]string{unknown: "", late: "mnpv", pin: "mnpv"} {
		if got := kindsOf(w, id); got != want {
			t.Errorf("after 98 h: %s has rows of kinds %q, want %q", id, got, want)
		}
	}
	last := map[string]*schemas.HotPin{}
	for _, r := range proctest.Drain(w, w.Streams.HotPins) {
		last[r.Key] = r.Value
	}
	if h, sent := last[string(unknown)]; !sent || h != nil {
		t.Errorf("hot-pins of the unknown id end with %v, want a tombstone", h)
	}
	if last[string(pin)] == nil {
		t.Error("hot-pins lost the known pin")
	}
}
