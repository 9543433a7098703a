// Package actors stores the profile of each user and computes the user's affinities from their actions.
//
//	owner   user
//	in      users, client-impressions, actions-joined
//	rows    the profile, one affinity per facet (author, board, interest), when affinities were last sent, the last
//	        actions on pins, the number of actions
//	out     actions-enriched, affinities and impression-reports (key user), edge-weights (key followee), users-deleted (key user),
//	        erasures (key user, or followee), pin-actors and related-requests (key pin), board-saves (key board)
//	timers  affinities that are due, edge weights that decay
//
// # Profiles
//
// The newest update wins, by event time, then id. A delete is final: the group announces it on users-deleted, deletes the
// user's rows, and sends a record to erasures, after which the other groups delete theirs. Later events for the user are
// dropped. Another delete with a new event id announces the deletion again. Affinities of other users for a deleted author
// are no longer sent. Their rows are removed at the first send that is at least a minute after the previous removal.
//
// # Actions
//
// Each action is emitted once, joined with the newest known profile and the attributes that Config.JoinedAttributes
// names, and numbered in the order of emission. It never waits for a profile. For verbs in Config.EmbeddingVerbs, the actor's embedding is sent to the pin.
//
// # Affinities
//
// The affinity of a user for a facet is a sum over the actions on pins that had the facet when the action happened:
//
//	affinity(now) = Σ weight(verb) · 2^(−(now − time)/half-life)
//
// Times are event times, so a late action adds its decayed weight. A row holds the sum as of the newest action's time and
// needs no updates as time passes. After changes, the Config.TopAffinities strongest affinities are sent, at most once per
// Config.EmitInterval of arrival time; a timer sends the changes in between. The strongest affinities of recently
// active users are in memory. Therefore an action reads and writes only the rows of its facets. A user's own pins count
// for their boards and interests, but not for their author. When a user has a quarter more than Config.MaxAffinities
// rows, the weakest beyond MaxAffinities are removed.
//
// # Edge weights
//
// The affinity for a followee determines the weight of the edge, in the few steps of Config.EdgeWeightSteps. A
// hysteresis band (Config.EdgeWeightHysteresis) prevents flapping between two steps. A weight is sent only when the
// step changes: after an action or, by timer, through decay.
//
// # Related pins
//
// A positive action is one of a verb with a weight of at least Config.RelatedMinWeight. If its pin is known, the group
// sends:
//
//   - to the pin, a request for its neighbors. It contains the pins of the user's other positive actions within
//     Config.RelatedWindow of event time, before or after, among the last Config.RelatedMaxActions.
//   - to the board that the pin was saved to, if any, a record of the save.
//
// # Row lifetime
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'u'  profile           never: an update replaces it; a delete replaces it permanently, so later events are dropped
//	'f'  affinities        cap: MaxAffinities; erasure of the user; erasure of an author, see Profiles
//	'r'  last actions      cap: RelatedMaxActions; erasure
//	'n'  number of actions erasure
//	's'  when last sent    erasure
//
// # Drops
//
// Dropped events are counted by reason: deleted_user, duplicate. The reason weak_facet counts affinities removed by the
// cap.
package actors

import (
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Reasons for dropping an event or a row.
const (
	dropDeletedUser = "deleted_user"
	dropDuplicate   = "duplicate"
	dropWeakFacet   = "weak_facet"
)

// Group returns the topology of the group.
func Group(cfg Config, s *topics.Streams, deleted visibility.GrowingDeletedUsers) rows.Group {
	g := &group{cfg: cfg, streams: s, deleted: deleted}
	return rows.Group{
		Name: topics.Actors,
		Inputs: []rows.Input{
			rows.Keyed(s.Users, g.user),
			rows.Keyed(s.ClientImpressions, g.impressions),
			rows.Owned(s.ActionsJoined, "action", "actor", func(a *schemas.EnrichedAction) schemas.UserID { return a.Actor }, g.action),
		},
		Outputs: []string{
			topics.ActionsEnriched, topics.EdgeWeights, topics.Affinities, topics.UsersDeleted, topics.Erasures, topics.PinActors,
			topics.RelatedRequests, topics.BoardSaves, topics.Actions, topics.ImpressionReports,
		},
		Timer:  g.timer,
		Memory: func() any { return newRankings() },
	}
}

type group struct {
	cfg     Config
	streams *topics.Streams
	deleted visibility.GrowingDeletedUsers
}

// user handles an update or a delete of a profile.
func (g *group) user(tx *rows.Tx, e *schemas.UserEvent) error {
	if err := rows.Validate(tx, e, nil); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	switch effectOf(t.profile(), e) {
	case repeated:
		tx.Count(dropDuplicate)
	case ofDeleted:
		tx.Count(dropDeletedUser)
	case wins:
		t.putProfile(e)
	case deletes:
		t.erase(e)
	case deletesAgain:
		t.announceDeleted(e)
	}
	return nil
}

// impressions turns the pins that were on the user's screen into actions, and sends them to the pools. The group objects drops repeats.
func (g *group) impressions(tx *rows.Tx, i *schemas.ClientImpressions) error {
	if err := rows.Validate(tx, i, nil); err != nil {
		return err
	}
	if g.deleted.Has(i.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	rows.Send(tx, g.streams.ImpressionReports, string(i.User), i)
	for e := range i.Actions() {
		rows.Send(tx, g.streams.Actions, e.Key(), e)
	}
	return nil
}

// action handles an action of the user on a pin.
func (g *group) action(tx *rows.Tx, a *schemas.EnrichedAction) error {
	t := g.table(tx, tx.Own())
	profile := t.profile()
	if isDelete(profile) || g.deleted.Has(a.Actor) {
		tx.Count(dropDeletedUser)
		return nil
	}
	a.ActorAttributes = attributes(profile)
	joined := g.cfg.JoinedAttributes.apply(*a)
	joined.Number = int64(rows.AddNumber(t.own, []byte{numberRow}, 1))
	rows.Send(tx, t.streams.ActionsEnriched, string(a.Actor), &joined)
	g.sendEmbedding(tx, a)
	weight := g.cfg.weight(a.Verb) // read once, because a reload can change it
	t.relate(a, weight)
	t.updateAffinities(a, weight)
	return nil
}

// sendEmbedding sends the actor's embedding to the pin.
func (g *group) sendEmbedding(tx *rows.Tx, a *schemas.EnrichedAction) {
	if len(a.ActorAttributes.Embedding) == 0 || !slices.Contains(g.cfg.EmbeddingVerbs, a.Verb) {
		return
	}
	actor := schemas.PinActor{Pin: schemas.PinID(a.Object), Time: a.Timestamp, Embedding: a.ActorAttributes.Embedding}
	rows.Send(tx, g.streams.PinActors, string(actor.Pin), &actor)
}

// timer sends affinities that are due, or updates an edge weight that has decayed.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, _ time.Time) error {
	t := g.table(tx, owner)
	if name[0] == facetRow {
		t.decayWeight(schemas.ID(name[1:]))
	} else {
		t.sendDue()
	}
	return nil
}
