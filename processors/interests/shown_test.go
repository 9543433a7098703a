package interests_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// impressionRows returns the rows of impressions in the partition of a pin.
func (r *rig) impressionRows(pin schemas.PinID) []proctest.Row {
	return r.RowsOfKind(topics.Interests, rows.CommonOwner(r.partition(pin), r.Kafka.Partitions), 'h')
}

// An action counts for the newest impression of its pin before it, of the same user, within the window.
func TestAction_CountsForLastImpressionBeforeIt(t *testing.T) {
	cfg := interests.DefaultConfig()
	r := newRig(t, cfg, nil)
	const pin = "pin:1"
	r.card(card(pin, "", "interest:tea"))
	r.WaitIdle()
	show := func(user schemas.UserID, source schemas.Source, age time.Duration) {
		r.show(&schemas.Impressions{User: user, Time: schemas.MicrosOf(now.Add(-age)), Pins: []schemas.ShownPin{{Pin: pin, Source: source}}})
	}
	show("user:several", "following", 30*time.Hour)
	show("user:several", "boards", 2*time.Hour)
	show("user:several", "related", -time.Hour) // after the action
	show("user:same-hour", "following", 2*time.Second)
	show("user:same-hour", "boards", time.Second)
	show("user:same-hour", "related", -time.Second)
	show("user:late", "boards", cfg.AttributionWindow+time.Second)
	show("user:in-time", "explore", cfg.AttributionWindow-time.Second)
	show("user:other", "popular", time.Second)
	r.WaitIdle()
	for _, user := range []schemas.UserID{"user:several", "user:same-hour", "user:late", "user:in-time", "user:none"} {
		r.like(user, pin, time.Time{})
	}
	r.WaitIdle()
	got := map[schemas.Source]int64{}
	for _, e := range r.engaged("interest:tea") {
		if n := e.Counts["save"]; n > 0 {
			got[e.Source] = n
		}
	}
	expect.NoDiff(t, got, map[schemas.Source]int64{"boards": 2, "explore": 1, "direct": 2}, "saves by source")
}

// The visits of an hour share a row of bounded size, which expires.
func TestImpressions_RowsAreBoundedAndExpire(t *testing.T) {
	cfg := interests.DefaultConfig()
	r := newRig(t, cfg, nil)
	var pins []schemas.PinID
	for n := 0; len(pins) < 300; n++ {
		if pin := schemas.PinID(fmt.Sprint("pin:", n)); r.partition(pin) == 1 {
			pins = append(pins, pin)
			r.card(card(pin, "", "interest:tea"))
		}
	}
	r.WaitIdle()
	for n, pin := range pins {
		r.show(&schemas.Impressions{User: "user:1", Time: schemas.MicrosOf(now) + schemas.Micros(n), Pins: []schemas.ShownPin{{Pin: pin, Source: "boards"}}})
	}
	r.WaitIdle()
	if list := r.impressionRows(pins[0]); len(list) != 1 || len(list[0].Value) > 200*32 {
		t.Errorf("%d rows, the first of %d bytes, want one of 200 impressions", len(list), len(list[0].Value))
	}
	r.like("user:1", pins[0], now.Add(time.Second))
	r.like("user:1", pins[299], now.Add(time.Second))
	r.WaitIdle()
	r.Tick(topics.Interests, string(pins[0]), time.Now().Add(cfg.AttributionWindow+2*time.Hour))
	r.WaitIdle()
	expect.Equal(t, len(r.impressionRows(pins[0])), 0, "rows after the window")
}
