package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Action is an action with the attributes of its pin at the time when it was applied.
type Action struct {
	*schemas.ActionEvent
	Pin schemas.Facets
}

// Feature selects actions of a user, like a feature definition.
type Feature struct {
	Verbs  []schemas.Verb // none: all verbs
	Window time.Duration  // actions in (asOf - Window, asOf], rounded down to milliseconds
}

// applyAction joins an action with its pin. Apply actions after their pins, and each action once.
func (p *Product) applyAction(e *schemas.ActionEvent) {
	if pin, ok := p.Pin(schemas.PinID(e.Object)); ok {
		p.actions[e.Actor] = append(p.actions[e.Actor], Action{ActionEvent: e, Pin: pin.Facets})
	}
}

// Actions returns all actions.
func (p *Product) Actions() []Action {
	var all []Action
	for _, actions := range p.actions {
		all = append(all, actions...)
	}
	return all
}

// Matching returns the user's matching actions, newest first, ties by id descending.
func (p *Product) Matching(user schemas.UserID, f Feature, asOf schemas.Micros) []Action {
	end := millis(asOf)
	start := end - f.Window.Milliseconds()
	var matching []Action
	for _, a := range p.actions[user] {
		if at := millis(a.Time); at > start && at <= end && (len(f.Verbs) == 0 || slices.Contains(f.Verbs, a.Verb)) {
			matching = append(matching, a)
		}
	}
	slices.SortFunc(matching, func(a, b Action) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.ID, a.ID))
	})
	return matching
}

// CountByAuthor returns the number of the user's matching actions by author of the pin.
func (p *Product) CountByAuthor(user schemas.UserID, f Feature, asOf schemas.Micros) map[string]int {
	groups := map[string]int{}
	for _, a := range p.Matching(user, f, asOf) {
		groups[string(a.Pin.Author)]++
	}
	return groups
}

// CountByInterest returns the number of the user's matching actions by interest of the pin.
func (p *Product) CountByInterest(user schemas.UserID, f Feature, asOf schemas.Micros) map[string]int {
	groups := map[string]int{}
	for _, a := range p.Matching(user, f, asOf) {
		for _, interest := range a.Pin.Interests {
			groups[string(interest)]++
		}
	}
	return groups
}

// millis rounds a time down to milliseconds, also before 1970.
func millis(m schemas.Micros) int64 { return m.Time().UnixMilli() }
