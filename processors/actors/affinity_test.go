package actors

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

const (
	hour     = schemas.Micros(time.Hour / time.Microsecond)
	halfLife = 24 * time.Hour
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+math.Abs(want)) }

func TestFacets_OfAction(t *testing.T) {
	full := schemas.Facets{Author: "user:bob", Board: "board:a", Interests: []schemas.InterestID{"interest:x", "interest:y"}}
	tests := []struct {
		name    string
		actor   schemas.UserID
		facets  schemas.Facets
		deleted visibility.DeletedUsers
		want    []schemas.ID
	}{
		{"all", "user:eve", full, deletedtest.Of(), []schemas.ID{"user:bob", "board:a", "interest:x", "interest:y"}},
		{"an own pin", "user:bob", full, deletedtest.Of(), []schemas.ID{"board:a", "interest:x", "interest:y"}},
		{"of a deleted author", "user:eve", full, deletedtest.Of("user:bob"), []schemas.ID{"board:a", "interest:x", "interest:y"}},
		{"no pin", "user:eve", schemas.Facets{}, deletedtest.Of(), []schemas.ID{}},
	}
	for _, tt := range tests {
		a := &schemas.EnrichedAction{Actor: tt.actor, ObjectAttributes: schemas.ObjectAttributes{Facets: tt.facets}}
		expect.NoDiff(t, facets(a, tt.deleted), tt.want, "%s", tt.name)
	}
}

func TestStrongestAndWeakest(t *testing.T) {
	all := func() []schemas.Affinity {
		return []schemas.Affinity{{Facet: "c", Value: 1}, {Facet: "a", Value: 1}, {Facet: "b", Value: 3}, {Facet: "d", Value: -2}, {Facet: "e", Value: 1e-6}}
	}
	tests := []struct {
		name string
		got  []schemas.Affinity
		want string
	}{
		{"the two strongest", strongest(all(), 2), "b a"},
		{"no negative or negligible ones", strongest(all(), 9), "b a c"},
		{"strongest of none", strongest(nil, 9), ""},
		{"all but three, by absolute value", weakest(all(), 3), "c e"},
		{"none beyond the bound", weakest(all(), 5), ""},
	}
	for _, tt := range tests {
		got := convert.All(tt.got, func(a schemas.Affinity) string { return string(a.Facet) })
		expect.Equal(t, strings.Join(got, " "), tt.want, "%s", tt.name)
	}
}

func TestEffectOf(t *testing.T) {
	event := func(verb schemas.Verb, at schemas.Micros, id string) *schemas.UserEvent {
		return &schemas.UserEvent{Event: schemas.Event{Verb: verb, Time: at, ID: id}}
	}
	held, deleted := event(schemas.Update, 10, "m"), event(schemas.Delete, 10, "d")
	tests := []struct {
		name    string
		held, e *schemas.UserEvent
		want    effect
	}{
		{"first", nil, held, wins},
		{"newer", held, event(schemas.Update, 11, "a"), wins},
		{"older", held, event(schemas.Update, 9, "z"), loses},
		{"same time, higher id", held, event(schemas.Update, 10, "n"), wins},
		{"same time, lower id", held, event(schemas.Update, 10, "l"), loses},
		{"repeat", held, held, repeated},
		{"repeat with another body", held, event(schemas.Update, 99, "m"), repeated},
		{"delete, even an older one", held, event(schemas.Delete, 1, "d"), deletes},
		{"delete of an unknown user", nil, deleted, deletes},
		{"repeat of the delete", deleted, deleted, repeated},
		{"newer than the delete", deleted, event(schemas.Update, 99, "z"), ofDeleted},
		{"another delete", deleted, event(schemas.Delete, 99, "z"), deletesAgain},
	}
	for _, tt := range tests {
		expect.Equal(t, effectOf(tt.held, tt.e), tt.want, "%s", tt.name)
	}
}

// Any order and repetition of a user's events ends in the newest update, or in the delete.
func TestProfile_ConvergesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "events")
		var events []*schemas.UserEvent
		var newest *schemas.UserEvent
		deleted := false
		for i := range n {
			e := &schemas.UserEvent{Event: schemas.Event{ID: fmt.Sprint(i), Verb: schemas.Update,
				Time: schemas.Micros(rapid.IntRange(0, 3).Draw(t, "time"))}}
			if rapid.IntRange(0, 9).Draw(t, "delete") == 0 {
				e.Verb, deleted = schemas.Delete, true
			}
			if newest == nil || e.Time >= newest.Time { // ids ascend
				newest = e
			}
			events = append(events, e, e)
		}
		var held *schemas.UserEvent
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			if f := effectOf(held, e); f == wins || f == deletes {
				held = e
			}
		}
		expect.Equal(t, isDelete(held), deleted, "deleted")
		expect.False(t, !deleted && held != newest, "got event %s, want %s", held.ID, newest.ID)
	})
}
