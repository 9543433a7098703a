package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// on returns an action on a known pin.
func on(pin int, verb schemas.Verb, at time.Time) *schemas.EnrichedAction {
	a := action("user:eve", verb, at, fmt.Sprint(pin, verb, at), schemas.Facets{Author: "user:ada"})
	a.Object = schemas.ID(fmt.Sprintf("pin:%d", pin))
	a.ObjectAttributes.Version, a.ObjectAttributes.Created, a.ObjectAttributes.Quality = schemas.Version(pin), 5, 2
	return a
}

// nears returns the contents of each request as "pin: other×weight …".
func nears(requests []schemas.RelatedRequest) []string {
	var list []string
	for _, r := range requests {
		names := []string{string(r.Pin.ID) + ":"}
		for _, n := range r.Near {
			names = append(names, fmt.Sprintf("%s×%v", n.Neighbor.ID, n.Weight))
		}
		slices.Sort(names[1:])
		list = append(list, strings.Join(names, " "))
	}
	return list
}

func TestRelate_ActionsCloseInTime(t *testing.T) {
	cfg := actors.DefaultConfig()
	cfg.RelatedMaxActions, cfg.RelatedWindow = 3, 10*time.Minute
	w := start(t, cfg)
	start := now().Add(-time.Hour)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	unknown := on(9, schemas.Save, minute(3))
	unknown.ObjectAttributes = schemas.ObjectAttributes{}
	for _, a := range []*schemas.EnrichedAction{
		on(1, schemas.Click, minute(0)),
		on(2, schemas.Save, minute(10)),  // just close enough
		on(1, schemas.Click, minute(11)), // the first pin again: not its own neighbor
		on(8, schemas.View, minute(11)),  // weight too low
		on(8, schemas.Hide, minute(11)),  // negative
		unknown,
		on(3, schemas.Click, minute(5)),  // late; has the weight of the later action of each pair
		on(4, schemas.Click, minute(12)), // the click at minute 0 is no longer among the last three
		on(7, schemas.Click, minute(14)), // nor is the late one, which is the oldest
		on(5, schemas.Click, minute(40)), // too late after all others
		on(5, schemas.Save, minute(40)),  // replaces the action before
		on(6, schemas.Click, minute(41)),
	} {
		proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", a)
	}
	w.WaitIdle()
	records := proctest.Drain(w, w.Streams.RelatedRequests)
	for _, r := range records {
		expect.Equal(t, r.Key, string(r.Value.Pin.ID), "key of the request for %s", r.Value.Pin.ID)
	}
	got := nears(proctest.Values(records))
	want := []string{
		"pin:1:", "pin:2: pin:1×3", "pin:1: pin:2×1", "pin:3: pin:1×1 pin:1×1 pin:2×3", "pin:4: pin:1×1 pin:2×1 pin:3×1", "pin:7: pin:1×1 pin:2×1 pin:4×1",
		"pin:5:", "pin:5:", "pin:6: pin:5×1",
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.NoDiff(t, got, want, "requests")
	first := records[slices.IndexFunc(records, func(r proctest.Record[schemas.RelatedRequest]) bool { return r.Value.Pin.ID == "pin:2" })].Value
	wantPin := schemas.Neighbor{ID: "pin:2", Version: 2, Facets: schemas.Facets{Author: "user:ada"}, Created: 5, Quality: 2}
	if diff := gocmp.Diff(wantPin, first.Pin, cmpopts.EquateEmpty()); diff != "" || first.User != "user:eve" || first.Weight != 3 {
		t.Errorf("request of %s with weight %v, pin (-want +got):\n%s", first.User, first.Weight, diff)
	}
}

func TestRelate_SavesAreSentToBoard(t *testing.T) {
	w := start(t, actors.DefaultConfig())
	save, click := on(1, schemas.Save, now()), on(2, schemas.Click, now())
	save.VerbAttributes.Board = "board:b"
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", save, click)
	w.WaitIdle()
	records := proctest.Drain(w, w.Streams.BoardSaves)
	if len(records) != 1 || records[0].Key != "board:b" || records[0].Value.Pin.ID != "pin:1" || records[0].Value.Weight != 3 {
		t.Errorf("got %+v, want only the save of pin:1", records)
	}
}

// The last actions of a deleted user are deleted.
func TestRecentActions_DeletedWithUser(t *testing.T) {
	w := start(t, actors.DefaultConfig())
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", on(1, schemas.Save, now()), on(2, schemas.Save, now()))
	w.WaitIdle()
	expect.AtLeast(t, len(w.Rows(topics.Actors, "user:eve")), 3, "rows before the deletion")
	proctest.Publish(w, w.Streams.Users, "user:eve", profile("user:eve", schemas.Delete, now(), "d"))
	w.WaitIdle()
	expect.Empty(t, w.RowsOfKind(topics.Actors, "user:eve", 'r'), "rows of actions after the deletion")
}

// The verbs change with every read. An action has the same weight in affinities and as a neighbor.
func TestAction_HasOneWeight(t *testing.T) {
	cfg := actors.DefaultConfig()
	var reads atomic.Int64
	cfg.CurrentVerbs = func() schemas.Verbs { return schemas.Verbs{schemas.Save: 10 * float64(reads.Add(1))} }
	w := start(t, cfg)
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", on(1, schemas.Save, now()))
	w.WaitIdle()
	requests, affinities := proctest.Drain(w, w.Streams.RelatedRequests), proctest.Drain(w, w.Streams.Affinities)
	if len(requests) != 1 || len(affinities) != 1 || len(affinities[0].Value.Top) == 0 {
		t.Fatalf("got %+v and %+v, want one record each", requests, affinities)
	}
	expect.Near(t, requests[0].Value.Weight, float64(affinities[0].Value.Top[0].Value), 0.5, "weight as a neighbor, compared with affinities")
}
