package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func pinEvent(verb schemas.Verb, at schemas.Micros, id string, change ...func(*schemas.PinEvent)) *schemas.PinEvent {
	e := &schemas.PinEvent{
		Event: schemas.Event{ID: id, Time: at, Actor: "user:ada", Verb: verb, Object: "pin:1"},
		Title: "title of " + id,
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func by(actor schemas.UserID) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Actor = actor }
}

func on(board schemas.BoardID, interests ...schemas.InterestID) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Board, e.Interests = board, interests }
}

// rated returns a configuration in which creates differ in quality: 2 with interests, times 3 on board:a.
func rated() Config {
	cfg := DefaultConfig()
	cfg.QualityRules = []QualityRule{{Field: "interests", Factor: 2}, {Field: "board", Equals: "board:a", Factor: 3}}
	return cfg
}

// audience holds the last version of a pin that each followee was notified of.
type audience map[schemas.Followee]schemas.PinVersion

// play applies events in order. It returns the pin, the last version that each followee was notified of, and the reasons
// for drops.
func play(t rapid.TB, cfg Config, events ...*schemas.PinEvent) (*pin, audience, []string) {
	p, notified, drops := &pin{id: "pin:1"}, audience{}, []string(nil)
	stored := map[string]bool{} // versions of attributes
	for _, e := range events {
		before := p.lastVersion
		c := p.apply(e, cfg)
		expect.Equal(t, p.lastVersion > before, c.version, "event %s: a version after %d", e.ID, before)
		for _, f := range c.notify {
			notified[f] = p.version()
		}
		if c.keep {
			stored[e.ID] = true
		}
		for _, m := range c.forget {
			delete(stored, m.id)
		}
		if c.drop != "" {
			drops = append(drops, e.ID+" "+c.drop)
		}
	}
	for _, m := range p.kept {
		expect.True(t, stored[m.id], "version %s is stored", m.id)
	}
	expect.Equal(t, len(stored), len(p.kept), "versions stored")
	return p, notified, drops
}

func TestPin_Apply(t *testing.T) {
	create := pinEvent(schemas.Create, 100, "c", on("board:a", "interest:x"))
	tests := []struct {
		name     string
		events   []*schemas.PinEvent
		want     schemas.PinVersion // Pin is filled in
		notified []schemas.Followee
		drops    []string
	}{
		{
			name:     "create",
			events:   []*schemas.PinEvent{create},
			want:     schemas.PinVersion{Version: 100, PinContent: schemas.PinContent{Created: 100, Facets: facetsOf("user:ada", "board:a", "interest:x")}, Quality: 6},
			notified: []schemas.Followee{"board:a", "interest:x", "user:ada"},
		},
		{
			name:     "an update of the title is a version without publications",
			events:   []*schemas.PinEvent{create, pinEvent(schemas.Update, 200, "u", on("board:a", "interest:x"))},
			want:     schemas.PinVersion{Version: 200, PinContent: schemas.PinContent{Created: 100, Facets: facetsOf("user:ada", "board:a", "interest:x")}, Quality: 6},
			notified: []schemas.Followee{"board:a", "interest:x", "user:ada"},
		},
		{
			name:     "the create publishes the earlier update with a new version",
			events:   []*schemas.PinEvent{pinEvent(schemas.Update, 200, "u", on("board:b")), create},
			want:     schemas.PinVersion{Version: 100, PinContent: schemas.PinContent{Created: 100, Facets: facetsOf("user:ada", "board:b")}, Quality: 6},
			notified: []schemas.Followee{"board:b", "user:ada"},
		},
		{
			name:     "a late earlier create withdraws and publishes again",
			events:   []*schemas.PinEvent{create, pinEvent(schemas.Create, 50, "c0", by("user:bob"), on("board:b"))},
			want:     schemas.PinVersion{Version: 101, PinContent: schemas.PinContent{Created: 50, Facets: facetsOf("user:bob", "board:a", "interest:x")}, Quality: 1},
			notified: []schemas.Followee{"board:a", "interest:x", "user:ada", "user:bob"},
		},
		{
			name:     "repeats are dropped, another body under the same id too",
			events:   []*schemas.PinEvent{create, create, pinEvent(schemas.Create, 500, "c", on("board:z"))},
			want:     schemas.PinVersion{Version: 100, PinContent: schemas.PinContent{Created: 100, Facets: facetsOf("user:ada", "board:a", "interest:x")}, Quality: 6},
			notified: []schemas.Followee{"board:a", "interest:x", "user:ada"},
			drops:    []string{"c duplicate", "c duplicate"},
		},
		{
			name: "delete is final and notifies all followees",
			events: []*schemas.PinEvent{
				create, pinEvent(schemas.Update, 200, "u", on("board:b")), pinEvent(schemas.Delete, 150, "d", by("user:bob")),
				pinEvent(schemas.Delete, 150, "d"), pinEvent(schemas.Update, 900, "u9"), pinEvent(schemas.Delete, 950, "d9"),
			},
			want:     schemas.PinVersion{Version: 201, PinContent: schemas.PinContent{Created: 100, Deleted: true}, Quality: 6},
			notified: []schemas.Followee{"board:a", "board:b", "interest:x", "user:ada"},
			drops:    []string{"d duplicate", "u9 deleted_pin", "d9 deleted_pin"},
		},
		{
			name:   "delete before the create",
			events: []*schemas.PinEvent{pinEvent(schemas.Delete, 150, "d"), create},
			want:   schemas.PinVersion{Version: 150, Quality: 1, PinContent: schemas.PinContent{Deleted: true}},
			drops:  []string{"c deleted_pin"},
		},
		{
			name:     "versions before 1970 increase",
			events:   []*schemas.PinEvent{pinEvent(schemas.Create, -900, "c"), pinEvent(schemas.Update, -800, "u", on("board:b"))},
			want:     schemas.PinVersion{Version: 2, PinContent: schemas.PinContent{Created: -900, Facets: facetsOf("user:ada", "board:b")}, Quality: 1},
			notified: []schemas.Followee{"board:b", "user:ada"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, notified, drops := play(t, rated(), tt.events...)
			tt.want.Pin = "pin:1"
			expect.NoDiff(t, p.version(), tt.want, "version")
			expect.NoDiff(t, slices.Sorted(maps.Keys(notified)), tt.notified, "notified")
			expect.NoDiff(t, drops, tt.drops, "drops")
		})
	}
}

func facetsOf(author schemas.UserID, board schemas.BoardID, interests ...schemas.InterestID) schemas.Facets {
	return schemas.Facets{Author: author, Board: board, Interests: interests}
}

// expectedPin is the expected result of the events of a pin, independent of their order.
type expectedPin struct {
	origin  *schemas.PinEvent // the earliest create
	newest  *schemas.PinEvent // the newest create or update
	kept    []string          // ids of the newest versions of attributes
	deleted bool
}

func expectedPinOf(events []*schemas.PinEvent, versions int) expectedPin {
	byTime := slices.SortedFunc(slices.Values(events), func(a, b *schemas.PinEvent) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID))
	})
	byTime = slices.CompactFunc(byTime, func(a, b *schemas.PinEvent) bool { return a.ID == b.ID })
	var m expectedPin
	for _, e := range byTime {
		if e.Verb == schemas.Delete {
			return expectedPin{deleted: true}
		}
		if e.Verb == schemas.Create && m.origin == nil {
			m.origin = e
		}
		m.newest = e
		m.kept = append([]string{e.ID}, m.kept...)
	}
	m.kept = m.kept[:min(len(m.kept), versions)]
	return m
}

// version returns the version that followees expect with the configuration rated.
func (m expectedPin) version() schemas.PinVersion {
	v := schemas.PinVersion{
		Pin:        "pin:1",
		PinContent: schemas.PinContent{Facets: schemas.Facets{Author: m.origin.Actor, Board: m.newest.Board, Interests: m.newest.Interests}, Created: m.origin.Time},
		Quality:    1,
	}
	if len(m.origin.Interests) > 0 {
		v.Quality *= 2
	}
	if m.origin.Board == "board:a" {
		v.Quality *= 3
	}
	return v
}

func drawEvents(t *rapid.T) []*schemas.PinEvent {
	verb := rapid.SampledFrom([]schemas.Verb{
		schemas.Create, schemas.Create, schemas.Create, schemas.Update, schemas.Update, schemas.Update, schemas.Update, schemas.Delete,
	})
	n := rapid.IntRange(1, 14).Draw(t, "events")
	events := make([]*schemas.PinEvent, n)
	for i := range events {
		events[i] = pinEvent(
			verb.Draw(t, "verb"),
			schemas.Micros(rapid.IntRange(1000, 1008).Draw(t, "time")),
			fmt.Sprintf("e%02d", i),
			by(rapid.SampledFrom([]schemas.UserID{"user:ada", "user:bob"}).Draw(t, "actor")),
			on(rapid.SampledFrom([]schemas.BoardID{"", "board:a", "board:b"}).Draw(t, "board"),
				rapid.SliceOfNDistinct(rapid.SampledFrom([]schemas.InterestID{"interest:x", "interest:y", "interest:z"}), 0, 2, rapid.ID).Draw(t, "interests")...),
		)
	}
	return events
}

// anyOrder returns the events in some order, some of them several times.
func anyOrder(t *rapid.T, events []*schemas.PinEvent) []*schemas.PinEvent {
	more := slices.Clone(events)
	for _, e := range events {
		more = append(more, slices.Repeat([]*schemas.PinEvent{e}, rapid.IntRange(0, 2).Draw(t, "repeats"))...)
	}
	return rapid.Permutation(more).Draw(t, "order")
}

// Any order and any repetition of a pin's events leads to the same pin. Every followee ends with its last version, or was
// correctly never notified.
func TestPin_ConvergesInAnyOrder(t *testing.T) {
	cfg := rated()
	cfg.MaxVersions = 3
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		want := expectedPinOf(events, cfg.MaxVersions)
		p, notified, _ := play(t, cfg, anyOrder(t, events)...)
		expect.Equal(t, p.deleted(), want.deleted, "deleted")
		if want.deleted {
			for f, v := range notified {
				expect.True(t, v.Deleted, "last publication to %s, version %d: the deletion", f, v.Version)
			}
			return
		}
		checkContent(t, p, want)
		checkAudience(t, notified, want)
	})
}

func checkContent(t *rapid.T, p *pin, want expectedPin) {
	var kept []string
	for _, m := range p.kept {
		kept = append(kept, m.id)
	}
	expect.NoDiff(t, kept, want.kept, "kept versions")
	expect.Equal(t, p.head.title, want.newest.Title, "title")
	expect.Equal(t, p.created(), want.origin != nil, "created")
}

func checkAudience(t *rapid.T, notified audience, want expectedPin) {
	if want.origin == nil {
		expect.Equal(t, len(notified), 0, "publications of a pin without a create")
		return
	}
	version := want.version()
	for f := range version.Followees {
		if _, ok := notified[f]; !ok {
			t.Errorf("no publication to %s", f)
		}
	}
	for f, got := range notified {
		got.Version = 0
		expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, version, "last publication to %s", f)
	}
}

func TestPin_DropsFolloweesBeyondBound(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxFollowees = 3
	_, notified, _ := play(t, cfg,
		pinEvent(schemas.Create, 1, "1", on("board:1")),
		pinEvent(schemas.Update, 2, "2", on("board:2")),
		pinEvent(schemas.Update, 3, "3", on("board:3")),
		pinEvent(schemas.Update, 4, "4", on("board:4")))
	got := []schemas.Version{notified["board:1"].Version, notified["board:2"].Version, notified["board:4"].Version}
	expect.NoDiff(t, got, []schemas.Version{3, 4, 4}, "last versions of boards 1, 2 and 4")
	expect.False(t, notified["board:1"].Board == "board:1", "board 1 keeps the pin")
}

func TestPin_AsOf(t *testing.T) {
	p := &pin{kept: []moment{{30, "c"}, {20, "b"}, {20, "a"}, {10, "z"}}}
	tests := []struct {
		name string
		at   schemas.Micros
		want string
	}{
		{"after all", 99, "c"},
		{"at the same time", 30, "c"},
		{"between", 29, "b"},
		{"same time, higher id", 20, "b"},
		{"before all: the oldest known", 9, "z"},
	}
	for _, tt := range tests {
		expect.Equal(t, p.asOf(tt.at).id, tt.want, "%s", tt.name)
	}
}
