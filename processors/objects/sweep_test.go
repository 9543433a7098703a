package objects_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const sweptPin = schemas.PinID("pin:1")

// newSweepRig starts the group with default durations, without popular pins, for a parallel test, and publishes a pin.
func newSweepRig(t *testing.T) (w *proctest.Wire, at time.Time) {
	t.Parallel()
	w, at = proctest.New(t), now()
	cfg := objects.DefaultConfig()
	cfg.Popular.MaxPins = 0
	w.Start("a", objects.Group(cfg, w.Streams, deletedtest.Of()))
	proctest.Publish(w, w.Streams.Pins, string(sweptPin), pinAt(schemas.Create, sweptPin, at, "c"))
	return w, at
}

// tick lets timers fire that are due at a time, and returns the number of the pin's rows besides the pin and its attributes.
func tick(w *proctest.Wire, at time.Time) int {
	w.Tick(topics.Objects, string(sweptPin), at)
	w.WaitIdle()
	return len(w.Rows(topics.Objects, string(sweptPin))) - 2
}

// A repeat after the window has an effect, although the sweep has not deleted the row of the first action yet.
func TestSweep_KeepsRowsWithoutTheirEffect(t *testing.T) {
	w, at := newSweepRig(t)
	first := actionAt(schemas.Click, sweptPin, at, "first")
	last := actionAt(schemas.Click, sweptPin, at, "last")
	proctest.PublishAt(w, w.Streams.Actions, at, string(sweptPin), first)
	proctest.PublishAt(w, w.Streams.Actions, at.Add(time.Hour), string(sweptPin), last)
	w.WaitIdle()
	must.Equal(t, tick(w, at.Add(96*time.Hour)), 3, "rows when the first action has expired: the last action, the counts and their sweep")
	proctest.PublishAt(w, w.Streams.Actions, at.Add(97*time.Hour-time.Second), string(sweptPin), last)
	proctest.PublishAt(w, w.Streams.Actions, at.Add(97*time.Hour), string(sweptPin), last)
	w.WaitIdle()
	expect.Equal(t, len(proctest.Drain(w, w.Streams.ActionsJoined)), 3, "actions forwarded: two, and the repeat after the window")
}

// The timer moves to the earliest expiry, and the sweep of many rows takes several ticks.
func TestSweep_DeletesEachRowAfterItsExpiry(t *testing.T) {
	w, at := newSweepRig(t)
	actions := make([]*schemas.ActionEvent, 1100)
	for i := range actions {
		actions[i] = actionAt(schemas.Click, sweptPin, at, fmt.Sprint("action-", i))
	}
	proctest.Publish(w, w.Streams.Actions, string(sweptPin), actions...)
	w.WaitIdle()
	show(w, shown(at.Add(-95*time.Hour), sweptPin))
	w.WaitIdle()
	must.Equal(t, tick(w, at), 1104, "rows: the actions, two steps of counts, the exposure and the sweep")
	for _, step := range []struct {
		after time.Duration
		rows  int
	}{
		{time.Hour + 10*time.Minute, 1104}, {2 * time.Hour, 1104}, {2 * time.Hour, 1103}, // the older step is the last of three parts
		{97 * time.Hour, 603}, {97 * time.Hour, 103}, {97 * time.Hour, 2}, {110 * time.Hour, 1},
	} {
		expect.Equal(t, tick(w, at.Add(step.after)), step.rows, "rows after %s", step.after)
	}
}

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
	w, _ := start(t, objects.DefaultConfig())
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
	must.Equal(t, kindsOf(w, unknown), "mnsx", "rows of an unknown id: exposure, mean, counts and their sweep")
	tick(96*time.Hour + 10*time.Minute) // a step of counts ends up to five minutes later
	expect.Equal(t, kindsOf(w, unknown), "mn", "kinds of rows of an unknown id after the counts expired: exposure and mean")
	tick(98 * time.Hour)
	for id, want := range map[schemas.PinID]string{unknown: "", late: "mnpv", pin: "mnpv"} {
		expect.NoDiff(t, kindsOf(w, id), want, "after 98 h: %s has rows of kinds", id)
	}
	last := map[string]*schemas.HotPin{}
	for _, r := range proctest.Drain(w, w.Streams.HotPins) {
		last[r.Key] = r.Value
	}
	if h, sent := last[string(unknown)]; !sent || h != nil {
		t.Errorf("hot-pins of the unknown id end with %v, want a tombstone", h)
	}
	expect.True(t, last[string(pin)] != nil, "hot-pins keeps the known pin")
}
