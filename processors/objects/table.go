package objects

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// The kinds of a pin's rows, by the first byte of their names. Times in names are eight bytes that sort by time.
const (
	pinRow      = 'p' // → the state of the pin; see pin.Pack
	versionRow  = 'v' // event time, event id → a create or update, as a record of pins
	rememberRow = 'a' // event id of an action → arrival
	heldRow     = 'h' // arrival, event id → an action that waits for its pin, as a record of actions; has a timer
	hotRow      = 'n' // → exposure; has a timer while the pin is hot, or while the id has no pin
	countRow    = 's' // start of the step → counts, as a record of item-features
	sweepRow    = 'x' // → the next sweep of remembered actions and counts; see sweep.Pack; has a timer
	actorsRow   = 'm' // → the mean of recent actors; see mean.Pack; has a timer while the id has no pin

	engagementRow = 'e' // → engagement; has a timer
)

// The kind of the common rows of a partition.
const slotRow = 'o' // number → slot of popular-pins

// table gives access to the rows and outputs of one pin during one callback.
type table struct {
	tx  *rows.Tx
	own rows.Owner
	*group
}

func (g *group) table(tx *rows.Tx, own rows.Owner) table { return table{tx, own, g} }

func (t table) now() schemas.Micros { return schemas.MicrosOf(t.tx.Time()) }

// pin returns the state of the pin, or the zero state if there is none.
func (t table) pin(id schemas.PinID) *pin {
	p, _ := rows.Load[pin](t.own, []byte{pinRow})
	p.id = id
	return &p
}

// change writes the changes of an event to the rows of the pin.
func (t table) change(p *pin, c change, e *schemas.PinEvent) {
	if c.keep {
		rows.PutRecord(t.own, versionName(moment{e.Time, e.ID}), t.streams.Pins, e)
	}
	for _, m := range c.forget {
		t.own.Delete(versionName(m))
	}
	if c.keep || c.version {
		rows.PutValue(t.own, []byte{pinRow}, p)
	}
}

// publish sends a new version to the followees in c and to the other outputs. e is the event that caused the version.
func (t table) publish(p *pin, c change, e *schemas.PinEvent) {
	if !c.version {
		return
	}
	version := p.version()
	for _, f := range c.notify {
		rows.Send(t.tx, t.streams.Publications, string(f), &schemas.Publication{Followee: f, PinVersion: version})
	}
	card := p.card()
	rows.Send(t.tx, t.streams.PinCards, string(p.id), &card)
	t.publishAttributes(p, e)
}

// publishAttributes sends the facets of a pin and the attributes of the newest create or update. A deleted pin has none.
func (t table) publishAttributes(p *pin, e *schemas.PinEvent) {
	content := p.version().PinContent
	rec := schemas.PinAttributes{Pin: p.id, Version: p.lastVersion, Deleted: content.Deleted, Facets: content.Facets}
	switch {
	case p.deleted():
		t.own.Delete([]byte{actorsRow})
	case p.kept[0].id == e.ID:
		rec.Attributes, rec.Embedding = e.Attributes, e.Embedding
	default:
		head := t.version(p, p.kept[0])
		rec.Attributes, rec.Embedding = head.Attributes, head.Embedding
	}
	rows.Send(t.tx, t.streams.PinAttributes, string(p.id), &rec)
}

// version returns a version with kept attributes.
func (t table) version(p *pin, m moment) *schemas.PinEvent {
	version := rows.Record(t.own, versionName(m), t.streams.Pins)
	if version == nil {
		t.tx.Fail(fmt.Errorf("read version %d %q of %s: missing row", m.time, m.id, p.id))
		return &schemas.PinEvent{}
	}
	return version
}

// remember stores the event id of an action, and reports whether it was known.
func (t table) remember(id string) bool {
	name := rows.Name(rememberRow, id)
	if arrival := t.own.Load(name); arrival != nil {
		if expiry, _ := t.expiry(name, arrival); expiry.After(t.tx.Time()) {
			return true
		}
	}
	t.own.Put(name, packed.AppendOrdered(nil, t.now()))
	t.sweepAt(t.tx.Time().Add(t.cfg.DedupWindow))
	return false
}

// noActor is the actor of an impression.
const noActor schemas.UserID = ""

// countEvent counts an impression, or an action of some verb by the actor.
func (t table) countEvent(p *pin, what string, at schemas.Micros, actor schemas.UserID) {
	t.countInStep(p.id, what, at, actor)
	t.countExposure(p, what)
}

// countInStep adds one to a count of the step that contains at, and sends the counts of the step.
func (t table) countInStep(id schemas.PinID, what string, at schemas.Micros, actor schemas.UserID) {
	start := stepOf(at)
	end := t.stepEnd(start)
	if !end.After(t.tx.Time()) {
		t.tx.Count(partLateCount)
		return
	}
	counts := t.counts(start)
	if counts == nil {
		counts = &schemas.ItemCounts{Pin: id, Start: start, Counts: map[string]int64{}}
		t.sweepAt(end)
	}
	counts.Counts[what]++
	if actor != noActor {
		counts.Actors = counts.Actors.Add(string(actor))
	}
	rows.PutAndSendLatest(t.own, countName(start), t.streams.ItemFeatures, string(id), counts)
}

// stepEnd returns when the counts of a step expire.
func (t table) stepEnd(start schemas.Micros) time.Time {
	return (start + schemas.ItemStep).Time().Add(t.cfg.CountRetention)
}

// counts returns the counts of a step, or nil if there are none.
func (t table) counts(start schemas.Micros) *schemas.ItemCounts {
	return rows.Record(t.own, countName(start), t.streams.ItemFeatures)
}

func countName(start schemas.Micros) []byte { return packed.AppendOrdered([]byte{countRow}, start) }

// addActor adds an embedding to the mean of the pin's recent actors and sends the mean with the counts of its step.
func (t table) addActor(p *pin, a *schemas.PinActor) {
	m := t.mean()
	if m.weight == 0 && !p.known() {
		t.own.SetTimer(t.tx.Time().Add(t.cfg.unknownFor()), []byte{actorsRow})
	}
	if !m.add(a.Embedding, a.Time, t.cfg.ActorEmbeddingHalfLife) {
		return
	}
	rows.PutValue(t.own, []byte{actorsRow}, m)
	counts := t.counts(stepOf(a.Time))
	if counts == nil { // nil: the step's counts have expired, and its mean is not sent
		return
	}
	counts.Embedding = m.vector()
	rows.Send(t.tx, t.streams.ItemFeatures, string(a.Pin), counts)
}

// mean returns the mean of recent actors, which is empty if there is no row.
func (t table) mean() *mean {
	m, _ := rows.Load[mean](t.own, []byte{actorsRow})
	return &m
}

// expireActors deletes the mean of an id that still has no pin, unless it has a recent actor.
func (t table) expireActors(p *pin) {
	m := t.mean()
	if m.weight == 0 || p.known() {
		return
	}
	if until := m.time.Time().Add(t.cfg.unknownFor()); until.After(t.tx.Time()) {
		t.own.SetTimer(until, []byte{actorsRow})
		return
	}
	t.own.Delete([]byte{actorsRow})
}

// join forwards an action with the attributes that the pin had at its time.
func (t table) join(p *pin, e *schemas.ActionEvent) {
	t.forward(e, attributes(p, t.version(p, p.asOf(e.Time))))
}

// forward forwards an action to its actor.
func (t table) forward(e *schemas.ActionEvent, a schemas.ObjectAttributes) {
	rows.Send(t.tx, t.streams.ActionsJoined, string(e.Actor), &schemas.EnrichedAction{
		ID:               e.ID,
		Timestamp:        e.Time,
		Actor:            e.Actor,
		Verb:             e.Verb,
		VerbAttributes:   schemas.VerbAttributes{Board: e.Board, Surface: e.Surface, Attributes: e.Attributes},
		Object:           e.Object,
		ObjectAttributes: a,
	})
}

// hold stores an action until its pin arrives. If MaxWaitingActions actions wait, hold forwards the action without
// attributes.
func (t table) hold(p *pin, e *schemas.ActionEvent) {
	waiting := rows.LoadNames(t.own, []byte{heldRow}, t.cfg.MaxWaitingActions)
	if len(waiting) >= t.cfg.MaxWaitingActions || t.cfg.JoinTimeout == 0 {
		t.tx.Count(partHoldLimit)
		t.forward(e, schemas.ObjectAttributes{})
		return
	}
	name := append(packed.AppendOrdered([]byte{heldRow}, t.now()), e.ID...)
	rows.PutRecord(t.own, name, t.streams.Actions, e)
	t.own.SetTimer(t.tx.Time().Add(t.cfg.JoinTimeout), name)
}

// releaseAtOnce is the number of held actions that one record releases. At the maximum size they are 5 MB of output, which
// fits one transaction. Timers release the others.
const releaseAtOnce = 20

// release releases all held actions. They are joined with the pin, or dropped if it is deleted.
func (t table) release(p *pin) {
	for i, name := range rows.LoadNames(t.own, []byte{heldRow}, 0) {
		t.own.DropTimer(heldSince(name).Time().Add(t.cfg.JoinTimeout), name)
		if i < releaseAtOnce {
			t.releaseAction(p, name)
		} else {
			t.own.SetTimer(t.tx.Time(), name)
		}
	}
}

// releaseAction releases a held action, with or without its pin.
func (t table) releaseAction(p *pin, name []byte) {
	e := rows.Record(t.own, name, t.streams.Actions)
	if e == nil { // nil: already released; the timer stays if Config.JoinTimeout has changed since it was set
		return
	}
	t.own.Delete(name)
	switch {
	case p.deleted():
		t.tx.Count(dropDeletedPin)
	case len(p.kept) > 0:
		t.join(p, e)
	default:
		t.tx.Count(partUnknownPin)
		t.forward(e, schemas.ObjectAttributes{})
	}
}

func versionName(m moment) []byte {
	return append(packed.AppendOrdered([]byte{versionRow}, m.time), m.id...)
}

// heldSince returns the arrival time in the name of a held action.
func heldSince(name []byte) schemas.Micros { return packed.FirstOrdered[schemas.Micros](name[1:]) }
