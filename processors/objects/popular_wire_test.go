package objects_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// popularRig runs the group with two slots per partition.
type popularRig struct {
	*proctest.Wire
	member *proctest.Member
	ids    int
}

// newPopularRig starts the group, for a parallel test.
func newPopularRig(t *testing.T) *popularRig {
	t.Parallel()
	r := &popularRig{Wire: proctest.New(t)}
	r.start("a", 2)
	return r
}

func (r *popularRig) start(member string, slots int) {
	cfg := objects.DefaultConfig()
	cfg.Popular.MaxPins = slots
	r.member = r.Start(member, objects.Group(cfg, r.Streams, deletedtest.Of()))
}

func (r *popularRig) create(pin schemas.PinID, at time.Time) {
	proctest.Publish(r.Wire, r.Streams.Pins, string(pin), pinAt(schemas.Create, pin, at, "create "+string(pin)))
	r.WaitIdle()
}

// act publishes an action of each of some users.
func (r *popularRig) act(verb schemas.Verb, pin schemas.PinID, users ...string) {
	for _, user := range users {
		r.ids++
		proctest.Publish(r.Wire, r.Streams.Actions, string(pin), actionAt(verb, pin, now(), fmt.Sprint("a", r.ids), func(e *schemas.ActionEvent) {
			e.Actor = schemas.UserID("user:" + user)
		}))
	}
	r.WaitIdle()
}

// tops returns the current slots.
func (r *popularRig) tops() map[string]*schemas.PopularPin {
	slots := map[string]*schemas.PopularPin{}
	for _, rec := range proctest.Drain(r.Wire, r.Streams.PopularPins) {
		if slots[rec.Key] = rec.Value; rec.Value == nil {
			delete(slots, rec.Key)
		}
	}
	return slots
}

func (r *popularRig) expect(t *testing.T, when string, want ...schemas.PinID) {
	t.Helper()
	var got []schemas.PinID
	for _, top := range r.tops() {
		got = append(got, top.Pin)
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.NoDiff(t, got, want, "%s", when)
}

// A pin needs actions of three users. A partition has as many popular pins as slots: those with the most engagement.
func TestPopular_KeepsStrongestPinsOfPartition(t *testing.T) {
	r := newPopularRig(t)
	pins := pinsIn(r.Wire, 0, 4)
	for _, pin := range pins {
		r.create(pin, now())
	}
	for range 10 {
		r.act(schemas.Save, pins[0], "a", "b")
	}
	r.act(schemas.View, pins[0], "c", "d", "e")
	r.act(schemas.Hide, pins[0], "c", "d", "e")
	r.expect(t, "repeated actions of two users, and views")
	r.act(schemas.Click, pins[0], "c")
	r.expect(t, "three users", pins[0])
	r.act(schemas.Save, pins[1], "a", "b", "c")
	r.expect(t, "a free slot", pins[0], pins[1])
	r.act(schemas.Click, pins[2], "a", "b", "c")
	r.expect(t, "weaker than both", pins[0], pins[1])
	r.act(schemas.Save, pins[3], "a", "b", "c", "d")
	r.expect(t, "stronger than the weakest", pins[1], pins[3])
	r.act(schemas.Save, pins[2], "d", "e", "f")
	r.expect(t, "a weaker pin has grown", pins[2], pins[3])
	expect.NoDiff(t, slices.Sorted(maps.Keys(r.tops())), []string{"0 1", "0 2"}, "keys: one for each slot")
}

// After a pin has taken the weakest slot, one that is stronger than the other slot takes that.
func TestPopular_TakesSlotsInOrderOfStrength(t *testing.T) {
	r := newPopularRig(t)
	pins := pinsIn(r.Wire, 0, 4)
	for i, saves := range []int{0, 1, 3, 2} {
		r.create(pins[i], now())
		users := []string{"a", "b", "c"}
		r.act(schemas.Save, pins[i], users[:saves]...)
		r.act(schemas.Click, pins[i], users[saves:]...)
		if i == 2 {
			r.expect(t, "the weaker slot first", pins[1], pins[2])
		}
	}
	r.expect(t, "then the stronger one", pins[2], pins[3])
}

// Slots outlast their process. After the maximum was lowered, the slots above it are free.
func TestPopular_KeepsSlotsOverRestart(t *testing.T) {
	r := newPopularRig(t)
	pins := pinsIn(r.Wire, 0, 3)
	for _, pin := range pins {
		r.create(pin, now())
	}
	r.act(schemas.Save, pins[0], "a", "b", "c")
	r.act(schemas.Save, pins[1], "a", "b", "c")
	r.member.Stop()
	r.member.Restart()
	r.act(schemas.Click, pins[2], "a", "b", "c")
	r.expect(t, "weaker than both", pins[0], pins[1])
	r.member.Stop()
	r.start("b", 1)
	r.act(schemas.Click, pins[2], "d")
	r.expect(t, "one slot", pins[0])
}

// The record of a popular pin has its current facets. A deleted pin, and one that is too old, leaves, and its slot is free.
func TestPopular_FollowsChangesOfPin(t *testing.T) {
	r := newPopularRig(t)
	pins := pinsIn(r.Wire, 0, 4)
	created := now().Add(-24 * time.Hour)
	for _, pin := range pins[:3] {
		r.create(pin, created)
	}
	r.create(pins[3], now().Add(-8*24*time.Hour))
	r.act(schemas.Save, pins[3], "a", "b", "c", "d")
	r.expect(t, "an old pin")
	r.act(schemas.Save, pins[0], "a", "b", "c")
	r.act(schemas.Save, pins[1], "a", "b", "c")
	proctest.Publish(r.Wire, r.Streams.Pins, string(pins[0]), pinAt(schemas.Update, pins[0], now(), "u", func(e *schemas.PinEvent) { e.Board = "board:new" }))
	r.WaitIdle()
	for _, top := range r.tops() {
		board := schemas.BoardID("board:a")
		if top.Pin == pins[0] {
			board = "board:new"
		}
		if top.Board != board || top.Author != "user:ada" || top.Created != schemas.MicrosOf(created) || top.Engagement < 8.9 {
			t.Errorf("got %+v, want the board %s and an engagement of 9", top, board)
		}
	}
	proctest.Publish(r.Wire, r.Streams.Pins, string(pins[0]), pinAt(schemas.Delete, pins[0], now(), "d"))
	r.WaitIdle()
	r.expect(t, "a deleted pin", pins[1])
	r.act(schemas.Click, pins[2], "a", "b", "c")
	r.expect(t, "its slot is free", pins[1], pins[2])
	r.Tick(topics.Objects, string(pins[1]), now().Add(7*24*time.Hour))
	r.WaitIdle()
	r.expect(t, "too old")
	expect.Omits(t, kindsOf(r.Wire, pins[1]), "e", "kinds of rows of a pin that is too old")
}
