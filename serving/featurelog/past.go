package featurelog

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Arrived is an action of the log and its arrival time, which decides whether an answer could include it.
type Arrived struct {
	schemas.EnrichedAction
	At schemas.Micros
}

// past holds the records about some users and pins, from which features can be computed as of any time. Register the users
// and pins with expect. Then add all records with fill.
type past struct {
	byUser   map[schemas.UserID][]Arrived
	byPin    map[schemas.PinID][]Arrived
	pins     map[schemas.PinID]*pinHistory
	complete bool // pins has every existing pin that is needed: one without records is unknown to the store

	after, upTo schemas.Micros // only actions with an event time and an arrival between these are needed
	// The times since when the topics are complete, by partition; 0: since ever.
	actionsSince, impressionsSince []schemas.Micros
}

func newPast() *past {
	return &past{
		byUser: map[schemas.UserID][]Arrived{}, byPin: map[schemas.PinID][]Arrived{}, pins: map[schemas.PinID]*pinHistory{},
		after: math.MinInt64, upTo: math.MaxInt64,
	}
}

// expect registers a user, a pin or a pair for definitions of an entity.
func (p *past) expect(entity feature.Entity, user schemas.UserID, pin schemas.PinID) {
	if entity != feature.Pin && p.byUser[user] == nil {
		p.byUser[user] = []Arrived{}
	}
	if entity == feature.Pin && p.byPin[pin] == nil {
		p.byPin[pin] = []Arrived{}
	}
	if entity != feature.User && p.pins[pin] == nil {
		p.pins[pin] = &pinHistory{}
	}
}

// Add adds an action of the log, or an impression of a visit: an action without an actor and with the verb
// schemas.ImpressionCount. With an actor, it is an impression that a client reported, which does not count for the pin.
func (p *past) Add(a Arrived) {
	if a.Timestamp < p.after || a.At > p.upTo {
		return
	}
	if list, ok := p.byUser[a.Actor]; ok {
		p.byUser[a.Actor] = append(list, a)
	}
	if list, ok := p.byPin[schemas.PinID(a.Object)]; ok && (a.Verb != schemas.ImpressionCount || a.Actor == "") {
		p.byPin[schemas.PinID(a.Object)] = append(list, a)
	}
}

// AddPin adds a record of pin-attributes.
func (p *past) AddPin(a *schemas.PinAttributes, arrived schemas.Micros) {
	if h := p.pins[a.Pin]; h != nil {
		h.versions = append(h.versions, arrivedPin{a, arrived})
	}
}

// cut holds the arrival times up to which a store had applied actions and pins. The store applies each in the order of
// arrival, but not both together.
type cut struct{ actions, pins schemas.Micros }

// compute evaluates a definition for a user, a pin or a pair, with the data that had arrived up to by. sure is false if the
// topics may have deleted data that the value depends on.
func (p *past) compute(d feature.Definition, user schemas.UserID, pin schemas.PinID, span feature.Span, by cut) (res feature.Result, sure bool) {
	sure = p.retains(d, user, span)
	pins := func(pin schemas.PinID) (feature.PinAttributes, bool) {
		own, known, said := p.pins[pin].at(by.pins)
		sure = sure && (said || p.complete)
		return own, known
	}
	switch d.Entity {
	case feature.Pin:
		res = feature.ReferenceItems(d, span.Now, itemCounts(p.byPin[pin], by.actions, p.pins[pin].deleted()))
	case feature.Pair:
		res = feature.ReferencePair(d, span, p.actions(user, by.actions), pin, pins)
	default:
		res = feature.Reference(d, span, p.actions(user, by.actions))
	}
	return res, sure
}

// retains reports whether the topics still have all actions of a definition's window.
func (p *past) retains(d feature.Definition, user schemas.UserID, span feature.Span) bool {
	start := span.AsOf - schemas.MicrosIn(window(d))
	if d.Entity == feature.Pin {
		return start >= slices.Max(slices.Concat([]schemas.Micros{0}, p.impressionsSince, p.actionsSince))
	}
	n := int32(len(p.actionsSince))
	return n == 0 || start >= p.actionsSince[topics.Partition(string(user), n)]
}

// window returns the longest window of a definition and its parts.
func window(d feature.Definition) time.Duration {
	if d.Aggregate == feature.Ratio {
		return max(window(*d.Numerator), window(*d.Denominator))
	}
	return d.Window
}

// actions returns the actions of a user that arrived up to by.
func (p *past) actions(user schemas.UserID, by schemas.Micros) []schemas.EnrichedAction {
	var all []schemas.EnrichedAction
	for _, a := range p.byUser[user] {
		if a.At <= by {
			all = append(all, a.EnrichedAction)
		}
	}
	return all
}

// itemCounts counts a pin's actions and impressions like the group objects, which drops those that arrive after the
// pin's deletion. (It drops such actions before they reach their topic.)
func itemCounts(actions []Arrived, by, deleted schemas.Micros) []schemas.ItemCounts {
	steps := map[schemas.Micros]*schemas.ItemCounts{}
	for _, a := range actions {
		if a.At > by || a.At > deleted && a.Actor == "" {
			continue
		}
		start := a.Timestamp - a.Timestamp%schemas.ItemStep
		if start > a.Timestamp { // before 1970
			start -= schemas.ItemStep
		}
		if steps[start] == nil {
			steps[start] = &schemas.ItemCounts{Start: start, Counts: map[string]int64{}}
		}
		steps[start].Counts[string(a.Verb)]++
		if a.Actor != "" { // not an impression
			steps[start].Actors = steps[start].Actors.Add(string(a.Actor))
		}
	}
	var all []schemas.ItemCounts
	for _, c := range steps {
		all = append(all, *c)
	}
	return all
}

// fill reads everything that the values are computed from.
func (p *past) fill(ctx context.Context, log *topics.Log, s *topics.Streams) (err error) {
	p.actionsSince, err = each(ctx, log, s.ActionsEnriched, func(a *schemas.EnrichedAction, r *kgo.Record) {
		p.Add(Arrived{*a, topics.OriginTime(r)})
	})
	if err != nil {
		return err
	}
	p.impressionsSince, err = each(ctx, log, s.Impressions, func(i *schemas.Impressions, r *kgo.Record) {
		for _, shown := range i.Pins {
			a := schemas.EnrichedAction{Verb: schemas.ImpressionCount, Object: schemas.ID(shown.Pin), Timestamp: i.Time}
			p.Add(Arrived{a, topics.OriginTime(r)})
		}
	})
	if err != nil {
		return err
	}
	pinsSince, err := each(ctx, log, s.PinAttributes, func(a *schemas.PinAttributes, r *kgo.Record) { p.AddPin(a, topics.OriginTime(r)) })
	p.complete = err == nil && slices.Max(pinsSince) == 0
	return err
}

// each visits all records of a topic up to its present end. It skips records that can never be read; they are in the
// dead-letter topic. It returns the time since when each partition is complete: 0, or the arrival of the oldest record if
// the topic may have deleted earlier ones.
func each[T any](ctx context.Context, log *topics.Log, s topics.Stream[T], visit func(*T, *kgo.Record)) (since []schemas.Micros, err error) {
	starts, err := log.Starts(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	since = make([]schemas.Micros, len(starts[s.Name]))
	for partition, start := range starts[s.Name] {
		if start > 0 { // if no record is left, the deleted ones may be recent
			since[partition] = schemas.MicrosOf(time.Now())
		}
	}
	read := topics.Decoded(s, func(rec *T, r *kgo.Record) error {
		visit(rec, r)
		return nil
	})
	return since, log.ReadAll(ctx, s.Name, func(r *kgo.Record) error {
		since[r.Partition] = min(since[r.Partition], schemas.MicrosOf(r.Timestamp))
		return read(r)
	})
}
