// Package actors keeps what is known of each user as somebody who acts: the profile, and what they care for.
//
//	owner   user
//	in      users, actions-joined
//	rows    the profile, one affinity a facet (author, board, interest), when affinities were last sent, the last
//	        actions on pins
//	out     actions-enriched and affinities (key user), edge-weights (key followee), users-deleted (key user),
//	        erasures (key user, or followee), pin-actors and related-requests (key pin), board-saves (key board)
//	timers  affinities that are due, edge weights that fade
//
// Profiles. The update that is newest by event time, then id, wins. Delete is final: it says so on users-deleted,
// clears everything the user had, has all others do so over erasures, and whatever comes of the user afterwards is
// dropped. A further delete, under another event id, has the others look again. What people cared for in a deleted author
// goes when their affinities are sent next.
//
// Actions. Each that comes in goes out once, with the newest known profile, which it never waits for, and with those of
// its attributes that Config.Joins names. Of verbs in Config.EmbeddingVerbs the actor's embedding goes to the pin.
//
// Affinities. For a user and a facet, over the actions on pins that had the facet when they were acted on,
//
//	affinity(now) = Σ weight(verb) · 2^(−(now − time)/half-life)
//
// by event time, so that a late action adds what is left of it. A row holds the sum as of the newest action's time and
// needs no rewriting as time passes. The strongest Config.Top of them are sent when they may have changed, at most
// once every Config.Every of arrival time; what changed in between is sent by timer. Own pins count for their boards and
// interests, not for their author. Beyond Config.MaxFacets rows the weakest go.
//
// Edge weights. The affinity for a followee, in the few steps of Config.Steps, with a band so that it does not flicker
// between two: sent only when the step moves, be it by an action or, on time, by fading.
//
// Related. A positive action, of a verb with at least Config.RelatedFrom, on a pin that is known asks for the pin's
// neighbours, names the pins of the user's other such actions within Config.RelatedWithin of event time, before or after,
// among the last Config.RelatedRecent, and tells the board that the pin was saved to, if any.
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'u'  profile           never: it is replaced, by a delete for good, and later events are dropped by that
//	'f'  affinities        cap: MaxFacets; erasure of the user, and of an author when affinities are sent next
//	'r'  last actions      cap: RelatedRecent; erasure
//	's'  when last sent    erasure
//
// What is dropped is counted by reason: deleted_user, repeat; weak_facet counts affinities given up for the bound.
package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers is the set of users who are gone for good.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
}

// Reasons for dropping an event or a row.
const (
	dropDeletedUser = "deleted_user"
	dropRepeat      = "repeat"
	dropWeakFacet   = "weak_facet"
)

// Group returns the topology of the group.
func Group(cfg Config, s *topics.Streams, deleted DeletedUsers) rows.Group {
	g := &group{cfg: cfg, streams: s, deleted: deleted}
	return rows.Group{
		Name: topics.Actors,
		Inputs: []rows.Input{
			rows.Keyed(s.Users, g.user),
			rows.Keyed(s.ActionsJoined, g.action),
		},
		Outputs: []string{
			topics.ActionsEnriched, topics.EdgeWeights, topics.Affinities, topics.UsersDeleted, topics.Erasures, topics.PinActors,
			topics.RelatedRequests, topics.BoardSaves,
		},
		Timer: g.timer,
	}
}

type group struct {
	cfg     Config
	streams *topics.Streams
	deleted DeletedUsers
}

// user works off an update or a delete.
func (g *group) user(tx *rows.Tx, e *schemas.UserEvent) error {
	if err := e.Validate(schemas.MicrosOf(tx.Time())); err != nil {
		return err
	}
	if err := e.CheckKey(tx.Key()); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	held, err := t.profile()
	if err != nil {
		return err
	}
	switch fateOf(held, e) {
	case repeated:
		tx.Count(dropRepeat)
	case ofDeleted:
		tx.Count(dropDeletedUser)
	case wins:
		return t.putProfile(e)
	case deletes:
		return t.erase(e)
	case deletesAgain:
		return t.tellErased(e)
	}
	return nil
}

// action works off what the user did to a pin.
func (g *group) action(tx *rows.Tx, a *schemas.EnrichedAction) error {
	if tx.Key() != string(a.Actor) {
		return schemas.Bad(fmt.Sprintf("key %.64q: want the record's %.64q", tx.Key(), a.Actor))
	}
	t := g.table(tx, tx.Own())
	profile, err := t.profile()
	if err != nil {
		return err
	}
	if isDelete(profile) || g.deleted.Has(a.Actor) {
		tx.Count(dropDeletedUser)
		return nil
	}
	a.ActorAttributes = attributes(profile)
	joined := g.cfg.Joins.apply(*a)
	if err := rows.Send(tx, t.streams.ActionsEnriched, string(a.Actor), &joined); err != nil {
		return err
	}
	if err := g.present(tx, a); err != nil {
		return err
	}
	if err := t.relate(a); err != nil {
		return err
	}
	return t.care(a)
}

// present tells a pin the embedding of who acted on it.
func (g *group) present(tx *rows.Tx, a *schemas.EnrichedAction) error {
	if len(a.ActorAttributes.Embedding) == 0 || !slices.Contains(g.cfg.EmbeddingVerbs, a.Verb) {
		return nil
	}
	actor := schemas.PinActor{Pin: schemas.PinID(a.Object), Time: a.Timestamp, Embedding: a.ActorAttributes.Embedding}
	return rows.Send(tx, g.streams.PinActors, string(actor.Pin), &actor)
}

// timer sends affinities that are due, or moves an edge weight that has faded.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, _ time.Time) error {
	t := g.table(tx, owner)
	if facet, ok := facetOf(name); ok {
		return t.fade(facet)
	}
	return t.sendDue()
}
