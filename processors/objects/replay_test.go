package objects

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestReplay(t *testing.T) {
	event := func(verb schemas.Verb, id string, at schemas.Micros, title string) *schemas.PinEvent {
		return &schemas.PinEvent{
			Event: schemas.Event{ID: id, Time: at, Actor: "user:a", Verb: verb, Object: "pin:1"}, Title: title, Board: "board:" + schemas.BoardID(id),
		}
	}
	before := DefaultConfig()
	now := DefaultConfig()
	now.QualityRules = []QualityRule{{Field: "title", Equals: "old", Factor: 3}, {Field: "title", Equals: "new", Factor: 5}}
	create, update := event(schemas.Create, "c", 10, "old"), event(schemas.Update, "u", 20, "new")
	later, end := event(schemas.Create, "later", 30, "new"), event(schemas.Delete, "d", 40, "")
	all := []schemas.Followee{"user:a", "board:later", "board:u", "board:c"}
	tests := []struct {
		name    string
		deleted bool
		cfg     Config
		event   *schemas.PinEvent
		quality float64
		stamp   schemas.Version
		want    change
	}{
		{"the first create gets the quality of the current rules", false, now, create, 3, 31, change{version: true, notify: all}},
		{"the same rules only notify", false, before, create, 1, 30, change{notify: all}},
		{"an update has no effect", false, now, update, 1, 30, change{}},
		{"a later create has no effect", false, now, later, 1, 30, change{}},
		{"the followees in an event of a deleted pin are notified", true, now, update, 1, 40, change{notify: []schemas.Followee{"user:a", "board:u"}}},
		{"a delete has no followees", true, now, end, 1, 40, change{}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p := &pin{id: "pin:1"}
			for _, e := range []*schemas.PinEvent{create, update, later} {
				p.apply(e, before)
			}
			if c.deleted {
				p.apply(end, before)
			}
			got := p.replay(c.event, c.cfg)
			expect.NoDiffBut(t, gocmp.AllowUnexported(change{}), got, c.want, "change")
			expect.Equal(t, p.origin.quality, c.quality, "quality")
			expect.Equal(t, p.lastVersion, c.stamp, "version")
			again := p.replay(c.event, c.cfg)
			expect.False(t, again.version, "a repeated replay made another version")
		})
	}
}
