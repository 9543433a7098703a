// Package objects keeps what is known of each pin: whose it is, what it says, who was told of it, and what people did
// to it.
//
//	owner   pin
//	in      pins, actions, pin-actors, replays; impressions (batched, any pins of the partition)
//	rows    the pin, the last versions of its attributes, remembered and held actions, counts and actors per step of
//	        time, the mean of recent actors, heat
//	out     publications (key followee), pin-cards, pin-attributes, item-features and hot-pins (key pin),
//	        actions-joined (key actor)
//	timers  remembered actions, held actions and old counts run out, hot pins cool down, rows of ids without a pin are deleted
//
// Pins. The earliest create, by event time and then id, gives author, creation and quality; the newest create or
// update gives everything else. So any order and any repetition of a pin's events ends in the same pin. Each change
// gets a new version number: the event's time, or one more than the pin's last number if that is not lower. A change of
// what followees go by (author, board, interests, creation, quality) is published to each followee of the pin, present
// and former, so that whoever had it learns that it has gone; any change goes to pin-cards and pin-attributes. An update
// before the create is kept for joins and published with it. Pin events are the producers' word: who updates or deletes
// a pin is not compared with its author. Delete is final; a deleted pin answers nothing any more.
//
// Actions. Each goes on once, with the attributes that its pin had at the time of the action, or the oldest known. A
// repeat is known by its event id for Config.Remember after its arrival. An action that comes before its pin is held
// until the pin comes, for Config.Hold at most.
//
// Counts. Every action and impression counts once, in the step of schemas.ItemStep that its event time falls into; each
// change emits the new counts of that step, with a sketch of who acted in it. Steps older than Config.CountFor are gone,
// what comes too late for its step is not counted.
//
// Recent actors. The embeddings of people who act on a pin come back over pin-actors, by way of the group that knows
// them; their mean is kept, each weighed by 2^(−age/Config.ActorsHalfLife), by event time, and emitted with its step's
// counts. One of another length than the mean's is of another model: it begins a new mean if it is newer, else it is
// left out.
//
// Hot pins. How often a pin was shown and saved, all in all, is sent once the two have reached Config.Hot.From together,
// and again whenever one has grown by an eighth: a pin costs a number of records that is logarithmic in what happens to
// it. When nothing has happened to it for Config.Hot.For, or it is deleted, hot-pins forgets it; its counts remain.
//
// Replays. The earliest create, said again, has its quality worked out by the rules of now; if that changes it, the pin has
// a new version, which its card and its present and former followees are told. These are told in any case, as their rules
// may have changed, too. Of a deleted pin whoever an event of it names is told that it is gone. Nothing else is done
// again: versions, counts, actions and held actions stay as they are. Effect: replayed, pins.
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'p'  the pin               never: a delete is final, and later events are dropped by this row; a deleted pin has no other
//	                           row, and in this one its version, creation and quality, and the id of the delete
//	'v'  its last versions     cap: Versions; event: delete
//	'a'  remembered actions    timer: Remember after their arrival
//	'h'  held actions          event: the pin comes; timer: Hold after their arrival
//	'n'  heat                  event: delete; timer, for an id without a pin: an hour after repeats and counts have expired
//	's'  counts of a step      timer: CountFor after the step's end
//	'm'  mean of recent actors as heat: event, or timer
//
// The pins of an erased user are deleted by events that fanout sends.
//
// What is dropped is counted by reason: no_actor, bot, deleted_user, deleted_pin, repeat; held_full, no_object and
// late_count name actions that went on without something.
package objects

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers is the set of users who are gone for good.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
}

// Group returns the topology of the group.
func Group(cfg Config, s *topics.Streams, deleted DeletedUsers) rows.Group {
	g := &group{cfg: cfg, streams: s, deleted: deleted}
	return rows.Group{
		Name: topics.Objects,
		Inputs: []rows.Input{
			rows.Keyed(s.Pins, g.pin),
			rows.Keyed(s.Actions, g.action),
			rows.Batched(s.Impressions, g.impressions),
			rows.Keyed(s.PinActors, g.actor),
			rows.Keyed(s.Replays, g.replay),
		},
		Outputs: []string{
			topics.Publications, topics.PinCards, topics.PinAttributes, topics.ActionsJoined, topics.ItemFeatures, topics.HotPins,
		},
		Timer: g.timer,
	}
}

type group struct {
	cfg     Config
	streams *topics.Streams
	deleted DeletedUsers
}

// event is what all events of the inputs can be asked.
type event interface {
	CheckKey(key string) error
}

func check(tx *rows.Tx, e event, validate func(arrival schemas.Micros) error) error {
	if err := validate(schemas.MicrosOf(tx.Time())); err != nil {
		return err
	}
	return e.CheckKey(tx.Key())
}

// pin works off a create, update or delete.
func (g *group) pin(tx *rows.Tx, e *schemas.PinEvent) error {
	if err := check(tx, e, e.Validate); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	p, err := t.pin(schemas.PinID(e.Object))
	if err != nil {
		return err
	}
	// A delete is worked off whoever sends it: it is how the pins of a deleted user go.
	if e.Verb != schemas.Delete && (g.deleted.Has(e.Actor) || g.deleted.Has(p.origin.author)) {
		tx.Count(dropDeletedUser)
		return nil
	}
	first := len(p.kept) == 0
	c := p.apply(e, g.cfg)
	if c.drop != "" {
		tx.Count(c.drop)
		return nil
	}
	if err := t.change(p, c, e); err != nil {
		return err
	}
	if err := t.publish(p, c, e); err != nil {
		return err
	}
	if p.deleted() {
		if err := t.forgetHot(p); err != nil {
			return err
		}
	}
	if first || p.deleted() {
		return t.release(p)
	}
	return nil
}

// action works off what somebody did to a pin.
func (g *group) action(tx *rows.Tx, e *schemas.ActionEvent) error {
	validate := func(arrival schemas.Micros) error { return e.Validate(arrival, g.cfg.Verbs) }
	if err := check(tx, e, validate); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	p, err := t.pin(schemas.PinID(e.Object))
	if err != nil {
		return err
	}
	if reason := g.unwanted(e, p); reason != "" {
		tx.Count(reason)
		return nil
	}
	known, err := t.remember(e.ID)
	if err != nil {
		return err
	}
	if known {
		tx.Count(dropRepeat)
		return nil
	}
	if err := t.happened(p, string(e.Verb), e.Time, e.Actor); err != nil {
		return err
	}
	if len(p.kept) == 0 {
		return t.hold(p, e)
	}
	return t.join(p, e)
}

// unwanted returns why an action is dropped, "" if it is not.
func (g *group) unwanted(e *schemas.ActionEvent, p *pin) string {
	switch {
	case e.Anonymous():
		return dropNoActor
	case isBot(g.cfg.Bots, e):
		return dropBot
	case g.deleted.Has(e.Actor):
		return dropDeletedUser
	case p.deleted():
		return dropDeletedPin
	}
	return ""
}

// impressions counts what a visit showed.
func (g *group) impressions(tx *rows.Tx, i *schemas.Impressions) error {
	for shown := range i.All() {
		if err := g.impression(tx, shown.Pin, i.Time); err != nil {
			return err
		}
	}
	return nil
}

// impression counts that a pin was shown.
func (g *group) impression(tx *rows.Tx, pin schemas.PinID, at schemas.Micros) error {
	t := g.table(tx, tx.Of(string(pin)))
	p, err := t.pin(pin)
	if err != nil {
		return err
	}
	if p.deleted() {
		tx.Count(dropDeletedPin)
		return nil
	}
	return t.happened(p, schemas.ImpressionCount, at, nobody)
}

// actor adds somebody's embedding to the mean of the pin's recent actors.
func (g *group) actor(tx *rows.Tx, a *schemas.PinActor) error {
	if tx.Key() != string(a.Pin) {
		return schemas.Bad(fmt.Sprintf("key %.64q: want the record's %.64q", tx.Key(), a.Pin))
	}
	t := g.table(tx, tx.Own())
	p, err := t.pin(a.Pin)
	if err != nil {
		return err
	}
	if p.deleted() {
		tx.Count(dropDeletedPin)
		return nil
	}
	return t.addActor(p, a)
}

// timer ends a remembered action, a held action or a step of counts, or looks whether a hot pin has cooled down, or whether an
// id is still no pin.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, _ time.Time) error {
	if len(name) == 0 || name[0] != heldRow && name[0] != hotRow && name[0] != actorsRow {
		return owner.Delete(name)
	}
	t := g.table(tx, owner)
	p, err := t.pin(schemas.PinID(tx.Key()))
	if err != nil {
		return err
	}
	switch name[0] {
	case hotRow:
		return t.coolDown(p)
	case actorsRow:
		return t.forgetActors(p)
	}
	return t.letGo(p, name)
}
