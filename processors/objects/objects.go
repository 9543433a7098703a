// Package objects stores the state of each pin: its author and content, its followees, and counts of the actions on it.
//
//	owner   pin
//	in      pins, actions, pin-actors, replays (key pin); impressions (batched, any pins of the partition)
//	rows    the pin, the last versions of its attributes, remembered and held actions, counts and actors per time step,
//	        the mean of recent actors, exposure, engagement; common: the popular pins of the partition
//	out     publications (key followee), pin-cards, pin-attributes, item-features and hot-pins (key pin),
//	        actions-joined (key actor), popular-pins (key partition and slot)
//	timers  sweep of expired remembered actions and counts; expiry of held actions; cooling of hot pins; age of popular pins;
//	        expiry of rows of ids without a pin
//
// # Pins
//
// The earliest create, by event time and then id, sets the author, creation time and quality. The newest create or update
// sets all other fields. Therefore any order and any repetition of a pin's events leads to the same pin.
//
// Each change gets a new version number: the event's time, or the pin's last number plus one if that is higher. A change of
// a field that followees depend on (author, board, interests, creation, quality) is published to each current followee of the
// pin. It is also published to former followees, which must withdraw the pin. Any change goes to pin-cards and pin-attributes.
// An update before the create is stored for joins and published with the create.
//
// Producers are trusted: the actor of an update or delete is not compared with the pin's author. A delete is final; later
// records of the pin are dropped.
//
// # Actions
//
// Each action is forwarded once, with the attributes that its pin had at the time of the action, or the oldest known ones.
// A repeat is recognized by its event id for Config.DedupWindow after the arrival of the first. An action that arrives
// before its pin is held until the pin arrives, for Config.JoinTimeout at most.
//
// # Counts
//
// Every action and impression counts once, in the step of schemas.ItemStep that contains its event time. Each change emits
// the new counts of that step, with a sketch of the actors in it. Steps older than Config.CountRetention are deleted. A
// record that arrives too late for its step is not counted.
//
// # Recent actors
//
// Another group sends the embeddings of the users who act on a pin over pin-actors. This group keeps their mean, weighted
// by 2^(−age/Config.ActorEmbeddingHalfLife) in event time, and emits it with the counts of the step. An embedding whose
// length differs from the mean's comes from another model: it starts a new mean if it is newer, and is ignored
// otherwise.
//
// # Hot pins
//
// The total impressions and saves of a pin are sent to hot-pins once their sum reaches Config.Hot.MinEngagement. They are sent again
// whenever one of them has grown by an eighth. The number of records per pin is logarithmic in its impressions and saves. A pin
// without any for Config.Hot.Expiry, or a deleted pin, is removed from hot-pins. The counts of a pin that is not deleted are
// kept.
//
// # Popular pins
//
// Each partition sends its most popular recent pins to popular-pins, in Config.Popular.MaxPins slots. An action raises the
// engagement with its pin by the weight of its verb, if that is at least Config.Popular.MinWeight. Of a user, it counts once
// among the last 16 actors of the pin, and the pin needs Config.Popular.MinActors of these: a few users cannot make a pin
// popular. A pin takes a free slot, or that of the pin with the least engagement, decayed with Config.Popular.HalfLife. It is
// sent again when its engagement has grown by an eighth, and when it changes. It leaves when it is deleted or has reached
// Config.Popular.MaxAge. An action that arrives before its pin does not count. A counted action reads and writes one row.
// Others, such as views, cost nothing.
//
// # Replays
//
// A replay of the earliest create recomputes its quality by the current rules. If the quality changes, the pin gets a new
// version, which is sent to pin-cards and to its current and former followees. These followees are notified even without a
// change, because their own rules may also have changed. For a deleted pin, the followees in the replayed event are
// notified of the deletion. A replay does not change versions, counts, actions and held actions. The effect replayed
// counts the pins.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name:
//
//	'p'  the pin               never: a delete is final, and this row causes later events to be dropped; a deleted pin has no
//	                           other row, and keeps its version, creation, quality and the id of the delete in this one
//	'v'  its last versions     cap: MaxVersions; event: delete
//	'a'  remembered actions    sweep: DedupWindow after their arrival
//	'h'  held actions          event: the pin arrives; timer: JoinTimeout after their arrival
//	'n'  exposure              event: delete; timer, for an id without a pin: an hour after repeats and counts have expired
//	's'  counts of a step      sweep: CountRetention after the step's end
//	'x'  next sweep            timer: a sweep finds no rows; it comes at most an eighth of the shorter time after the expiry
//	'm'  mean of recent actors as exposure: event, or timer
//	'e'  engagement            event: delete; timer: Popular.MaxAge after the creation
//	'o'  slots (common)        cap: Popular.MaxPins; with the engagement of the slot's pin
//
// The pins of an erased user are deleted by events that the fanout group sends.
//
// # Drops
//
// Dropped records are counted by reason: no_actor, bot, deleted_user, deleted_pin, duplicate. The reasons hold_limit,
// unknown_pin and late_count count actions that are processed incompletely: forwarded without attributes, or not counted.
package objects

import (
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology of the group.
func Group(cfg Config, s *topics.Streams, deleted visibility.DeletedUsers) rows.Group {
	g := &group{cfg: cfg, streams: s, deleted: deleted}
	return rows.Group{
		Name: topics.Objects,
		Inputs: []rows.Input{
			rows.Keyed(s.Pins, g.pin),
			rows.Keyed(s.Actions, g.action),
			rows.Batched(s.Impressions, g.impressions).Deferred(),
			rows.Owned(s.PinActors, "pin actor", "pin", func(a *schemas.PinActor) schemas.PinID { return a.Pin }, g.actor).Deferred(),
			rows.Keyed(s.Replays, g.replay),
		},
		Outputs: []string{
			topics.Publications, topics.PinCards, topics.PinAttributes, topics.ActionsJoined, topics.ItemFeatures, topics.HotPins,
			topics.PopularPins,
		},
		Timer:  g.timer,
		Memory: func() any { return new(slots) },
	}
}

type group struct {
	cfg     Config
	streams *topics.Streams
	deleted visibility.DeletedUsers
}

// verbs returns the known verbs for an action with this verb. Client impressions are actions, too.
func (g *group) verbs(verb schemas.Verb) schemas.Verbs {
	switch {
	case verb == schemas.ImpressionCount:
		return schemas.Verbs{verb: 0}
	case g.cfg.CurrentVerbs != nil:
		return g.cfg.CurrentVerbs()
	}
	return g.cfg.Verbs
}

// pin processes a create, update or delete.
func (g *group) pin(tx *rows.Tx, e *schemas.PinEvent) error {
	if err := rows.Validate(tx, e, nil); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	p := t.pin(schemas.PinID(e.Object))
	// A delete is processed regardless of its actor, because the pins of a deleted user are deleted this way.
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
	t.change(p, c, e)
	t.publish(p, c, e)
	if p.deleted() {
		t.removeHot(p)
	}
	if c.version && !first {
		t.refreshPopular(p)
	}
	if first || p.deleted() {
		t.release(p)
	}
	return nil
}

// action processes an action on a pin.
func (g *group) action(tx *rows.Tx, e *schemas.ActionEvent) error {
	if err := rows.Validate(tx, e, g.verbs(e.Verb)); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	p := t.pin(schemas.PinID(e.Object))
	if reason := g.dropReason(e, p); reason != "" {
		tx.Count(reason)
		return nil
	}
	if t.remember(e.ID) {
		tx.Count(dropDuplicate)
		return nil
	}
	if e.Verb != schemas.ImpressionCount { // impressions of visits count for the pin, see impressions
		t.countEvent(p, string(e.Verb), e.Time, e.Actor)
	}
	t.engage(p, e)
	if len(p.kept) == 0 {
		t.hold(p, e)
	} else {
		t.join(p, e)
	}
	return nil
}

// dropReason returns the reason for dropping an action, or "" to keep it.
func (g *group) dropReason(e *schemas.ActionEvent, p *pin) string {
	switch {
	case e.Anonymous():
		return dropNoActor
	case isBot(g.cfg.BotRules, e):
		return dropBot
	case g.deleted.Has(e.Actor):
		return dropDeletedUser
	case p.deleted():
		return dropDeletedPin
	}
	return ""
}

// impressions counts the pins that visits showed.
func (g *group) impressions(tx *rows.Tx, i *schemas.Impressions) error {
	for _, shown := range i.Pins {
		t := g.table(tx, tx.Of(string(shown.Pin)))
		if p := t.pin(shown.Pin); p.deleted() {
			tx.Count(dropDeletedPin)
		} else {
			t.countEvent(p, schemas.ImpressionCount, i.Time, noActor)
		}
	}
	return nil
}

// actor adds an embedding to the mean of the pin's recent actors.
func (g *group) actor(tx *rows.Tx, a *schemas.PinActor) error {
	t := g.table(tx, tx.Own())
	p := t.pin(a.Pin)
	if p.deleted() {
		tx.Count(dropDeletedPin)
		return nil
	}
	t.addActor(p, a)
	return nil
}

// timer sweeps expired rows, or expires a held action. It also checks whether a hot pin has cooled down, whether a popular pin
// is too old, and whether an id still has no pin.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, _ time.Time) error {
	t := g.table(tx, owner)
	p := t.pin(schemas.PinID(tx.Key()))
	switch name[0] {
	case sweepRow:
		t.sweep()
	case hotRow:
		t.expireHot(p)
	case actorsRow:
		t.expireActors(p)
	case engagementRow:
		t.refreshPopular(p)
	case heldRow:
		t.releaseAction(p, name)
	}
	return nil
}
