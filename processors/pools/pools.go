// Package pools keeps, for each user and source, the candidates that wait to be shown, best first; decides what a visit
// shows; and is the single writer of what was shown.
//
//	owner   user
//	in      edges, candidates, served, returns, affinities, rebuilds, erasures (keyed by the user); deliveries (batched,
//	        any users of the partition)
//	rows    candidates by source and score; edges and blocks, former and refused ones by name; seen pins; the newest frozen entries;
//	        pins given up; affinities; presence; state
//	out     feed-entries (key user), impressions (to the partitions of pins), edge-modes (key followee), erasures (key followee, or user),
//	        rebuilds (key user), fanout-loop (see schemas.Delivery)
//
// A delivery is a blind put of a row (source, score, pin, version) → facets; so is a withdrawal, with the new facets.
// Nothing is read, so that a delivery costs the same whatever came before. Of a pin's rows in one source the highest
// version gives the facets, the best score the place; whether the pin is deleted, blocked, no longer followed or seen is
// computed from the user's own rows when a pool is read or trimmed. A pool is the Cap best visible, unseen candidates;
// what is hidden has the same cap for itself. About once in Cap puts a pool is trimmed to its caps, or with the next put if
// the record has no room for that; what a trim drops is counted by reason, and returns only with a new delivery. What the next
// trim would drop for certain, because the pool was full of better ones at the last, does not become a row: it is counted
// the same, see floors.
//
// A user has at most MaxFollowees follows: the earliest by event time, whatever the order in which they come. Later ones are
// refused, counted as followee_cap, and admitted when an earlier one ends: see followees.go.
//
// A Served record makes its new items seen and gives them the next dense positions of the user's frozen feed. A repeat of
// a Served, and an item seen before, change nothing. Seen pins are exact up to SeenCap a user; then the oldest are
// forgotten, and candidates created before the oldest kept are refused.
//
// The pins of a followee with many followers are not delivered but pulled: whoever reads pools merges them in, see
// Pulled. A user who has not visited for AwayAfter is away: the followees are told, and deliver nothing new until the
// next visit, for which they bring what they have. Without AwayAfter nobody goes away, and whoever did before comes back
// with the next visit or Rebuild.
//
// What a feed's rules hold back for a later session a Served says, see package rules; a candidate that was deferred for
// too long loses its rows. What is pulled has none: the newest pins that were given up are remembered, and not pulled.
//
// A Rebuild takes the candidates away that followees brought, and has the followees bring what they have. Until all have
// answered, a chunk that could not wait for them says "returning".
//
// Of a deleted user all rows go, step by step, and every followee that ever was is told to forget the user; whatever comes
// afterwards is dropped and counted. Candidates of a deleted author are hidden at once, as those are that were deleted, and
// go when their pool is trimmed: by a timer, a day later or two, that the deletion or the end of the edge sets.
//
// Deletion. What deletes each kind of rows, by the first byte of their names. Erasure of the user deletes all of them.
//
//	'c'  candidates, first versions   cap: Cap, visible and hidden each; event: shown; sweep: deleted, or of an erased author
//	'd'  candidates, later versions   as first versions: cap, event, sweep
//	'e'  newest frozen entries        cap: Frozen
//	'g'  live follows and blocks      event: unfollow, unblock, erasure of the other side
//	'r'  follows over the cap         event: unfollow, erasure of the other side, or they are admitted
//	'w'  the same by event time       event: as its 'r'
//	'f'  counts of follows            erasure; one row
//	'o'  names of former followees    erasure of either side: an erasure must find each followee that has a row of the user
//	's'  seen pins                    cap: SeenCap
//	'i'  seen pins by position        cap: SeenCap
//	'u'  pins given up                cap: 1000, in one row
//	'a'  affinities                   erasure; one row
//	'v'  presence                     erasure; one row
//	'm'  state                        erasure; one row
//
// Effects are counted: went_away, returned and rebuilt, users; deferred and deferred_came_out, candidates; admitted_follows,
// follows that were refused before.
//
// Every record has its effect exactly once, see package rows. Generator reads the same rows and writes none.
package pools

import (
	"cmp"
	"sync"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers knows who is gone for good. It is asked from several goroutines.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	Len() int // how many they are; nobody comes back
}

// ErasedUsers are deleted users that may be told of one they have not heard of yet.
type ErasedUsers interface {
	DeletedUsers
	Note(user schemas.UserID, at schemas.Micros)
}

// Group returns the topology. cfg must be valid.
func Group(cfg Config, s *topics.Streams, deleted ErasedUsers) rows.Group {
	cfg.MaxFollowees = cmp.Or(cfg.MaxFollowees, DefaultConfig().MaxFollowees)
	g := &group{
		cfg: cfg, streams: s, deleted: deleted,
		putters: sync.Pool{New: func() any { return new(putter) }},
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{
			rows.Keyed(s.Edges, forgetting(g.edge)),
			rows.Batched(s.Deliveries, g.deliver),
			rows.Keyed(s.Candidates, forgetting(g.offer)),
			rows.Keyed(s.Served, forgetting(g.serve)),
			rows.Keyed(s.Returns, g.back),
			rows.Keyed(s.Affinities, g.affinities),
			rows.Keyed(s.Rebuilds, forgetting(g.rebuild)),
			rows.Keyed(s.Erasures, forgetting(g.erase)),
		},
		Outputs: []string{topics.FeedEntries, topics.Impressions, topics.EdgeModes, topics.FanoutLoop, topics.Rebuilds, topics.Erasures},
		Timer:   g.timer,
		Memory:  newFloors,
	}
}

// group is what the callbacks share. They run for several partitions at once.
type group struct {
	cfg     Config
	streams *topics.Streams
	deleted ErasedUsers
	putters sync.Pool // of *putter
	scratch sync.Pool // of *scratch
}

// Effects, see the package.
const (
	effectAway     = "went_away"
	effectReturned = "returned"
	effectRebuilt  = "rebuilt"
	effectAdmitted = "admitted_follows"

	effectDeliveries = "deliveries"            // candidates that came by an edge, one for each pin and user
	effectNeighbours = "deliveries_of_related" // the same of neighbours
)

// Reasons of what is dropped on purpose.
const (
	dropDeletedUser = "deleted_user" // the owner is gone
	dropRepeat      = "repeat"       // a Served that was applied before
	dropShown       = "shown"        // an item of a Served that was seen before
	dropFolloweeCap = "followee_cap" // a follow over the cap of followees
	dropSource      = "source"       // an offer of one source too many
	dropCap         = "cap"          // a visible candidate over the cap
	dropHiddenCap   = "hidden_cap"   // a hidden one over theirs
	dropErased      = "erased"       // a candidate of a deleted author
	dropDeleted     = "deleted"      // a candidate that was deleted for good, a day ago or more
	dropSeen        = "seen"         // a candidate that has been shown
	dropRefused     = "refused"      // a candidate older than what is remembered as seen
	dropExpired     = "expired"      // a candidate older than Expiry
	dropDeferred    = "deferred"     // a candidate that was deferred for too long
	dropDuplicate   = "duplicate"    // a row of a candidate that others make superfluous
)
