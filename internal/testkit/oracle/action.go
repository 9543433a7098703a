package oracle

import (
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// applyAction counts an action once and joins it with its pin. The action waits while its pin is unknown. Actions without an
// actor, by a deleted user, or on a deleted pin are dropped.
func (p *Product) applyAction(e *schemas.ActionEvent) {
	pin := schemas.PinID(e.Object)
	switch x := p.pins[pin]; {
	case e.Anonymous(), p.user(e.Actor).deleted, p.counted[e.ID], x != nil && x.deleted:
		return
	case x == nil:
		p.waiting[pin] = append(p.waiting[pin], e)
	default:
		p.join(e, x.asOf(e.Time))
	}
	p.counted[e.ID] = true
}

// StopWaiting joins the waiting actions, whose pins are unknown, without attributes.
func (p *Product) StopWaiting() {
	for pin := range p.waiting {
		p.stopWaitingFor(pin)
	}
}

func (p *Product) stopWaitingFor(pin schemas.PinID) {
	for _, e := range p.waiting[pin] {
		var attributes schemas.ObjectAttributes
		if x := p.pins[pin]; x != nil {
			attributes = x.asOf(e.Time)
		}
		p.join(e, attributes)
	}
	delete(p.waiting, pin)
}

func (p *Product) join(e *schemas.ActionEvent, object schemas.ObjectAttributes) {
	joined := &schemas.EnrichedAction{
		ID:               e.ID,
		Timestamp:        e.Time,
		Actor:            e.Actor,
		Verb:             e.Verb,
		VerbAttributes:   schemas.VerbAttributes{Board: e.Board, Surface: e.Surface, Attributes: e.Attributes},
		Object:           e.Object,
		ObjectAttributes: object,
	}
	if profile := p.user(e.Actor).profile; profile != nil {
		joined.ActorAttributes = schemas.ActorAttributes{
			Interests:  profile.Interests,
			Embedding:  profile.Embedding,
			Attributes: profile.Attributes,
		}
	}
	joined.Number = int64(len(p.actions[e.Actor])) + 1
	p.actions[e.Actor] = append(p.actions[e.Actor], joined)
	p.count(schemas.PinID(e.Object), e.Time, string(e.Verb))
}

// Impress counts an impression of the pin at the given time.
func (p *Product) Impress(pin schemas.PinID, at schemas.Micros) {
	p.count(pin, at, schemas.ImpressionCount)
}

func (p *Product) count(pin schemas.PinID, at schemas.Micros, what string) {
	start := stepOf(at)
	if p.steps[pin] == nil {
		p.steps[pin] = map[schemas.Micros]map[string]int64{}
	}
	if p.steps[pin][start] == nil {
		p.steps[pin][start] = map[string]int64{}
	}
	p.steps[pin][start][what]++
}

// stepOf returns the start of the item-feature step that contains the given time, also before 1970.
func stepOf(at schemas.Micros) schemas.Micros {
	start := at - at%schemas.ItemStep
	if start > at {
		start -= schemas.ItemStep
	}
	return start
}

// ItemCounts returns the counts of all users' actions on the pin, by step, oldest first.
func (p *Product) ItemCounts(pin schemas.PinID) []schemas.ItemCounts {
	var counts []schemas.ItemCounts
	for _, start := range slices.Sorted(maps.Keys(p.steps[pin])) {
		counts = append(counts, schemas.ItemCounts{Pin: pin, Start: start, Counts: maps.Clone(p.steps[pin][start])})
	}
	return counts
}

// Actions returns the user's actions, newest first, ties by id descending. Each one is joined with the attributes of its
// pin and its actor at the time when it was applied.
func (p *Product) Actions(user schemas.UserID) []*schemas.EnrichedAction {
	return newestFirst(slices.Clone(p.actions[user]))
}
