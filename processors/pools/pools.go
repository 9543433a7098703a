// Package pools keeps the candidates of each user and source, best first, and it is the only writer of the shown pins. Its
// package generator composes the chunks for visits.
//
//	owner   user
//	in      edges, candidates, served, impression-reports, user-activity, affinities, rebuilds, erasures (keyed by the user);
//	        deliveries (batched, any users of the partition)
//	rows    candidates by source and score; live, former and refused follows and blocks; seen pins and their
//	        reports; the newest materialized entries; pins deferred for too long; affinities; activity; state
//	out     feed-entries and visit-log (key user), impressions (to the partitions of pins), edge-modes (key followee), erasures (key
//	        followee, or user), rebuilds (key user), fanout-loop (see schemas.Delivery)
//
// # Deliveries
//
// A delivery is a blind put of one row (source, score, pin, version) → facets per pin and user. A withdrawal is the
// same put with the new facets. The put needs no read, so the cost of a delivery does not depend on the pool. If a pin
// has several rows in one source, the highest version determines the facets and the best score determines the rank.
// When a pool is read or trimmed, the user's own rows determine whether a pin is deleted, blocked, no longer followed,
// or seen.
//
// A pool is the MaxCandidates best visible, unseen candidates. Hidden candidates have a separate cap of the same size. A pool is
// trimmed to its caps about once in MaxCandidates puts. If the record has no room for the trim, the next put trims the pool. Dropped
// candidates are counted by reason and return only with a new delivery. A candidate that the next trim would certainly
// drop, because better ones filled the pool at its last trim, does not become a row. It is counted like a trimmed one;
// see thresholds.
//
// # Follows
//
// A user has at most MaxFollowees follows: the earliest by event time, regardless of the order of arrival. Later ones are
// refused and counted as followee_cap. A refused follow is admitted when an earlier one ends; see followees.go.
//
// # Visits
//
// A Served record marks its new items as seen and gives them the next dense positions of the user's materialized feed. A
// repeated Served and an item that was seen before change nothing. Seen pins are exact up to MaxSeenPins per user.
// Beyond that, the oldest are removed, and candidates created before the oldest remaining one was shown are refused.
//
// If the feed has seen: reported, an unreported item of a Served is no longer seen after the time in the Served. It returns as
// the candidate that it was, and also keeps its place in the materialized feed.
//
// A Served also contains the candidates that the rules of the feed defer to a later session; see package rules. A candidate
// that was deferred for too long loses its rows. A pulled candidate has no rows. Therefore the newest pins that were
// deferred for too long are stored, and are no longer pulled.
//
// # Pull
//
// The pins of a followee with many followers are not delivered but pulled: readers merge them into the pools; see
// generator.Pulled.
//
// # Inactive users
//
// The followees of an inactive user deliver nothing new. One row per user holds the state:
//
//	             no visit for InactiveAfter
//	   ┌───────────────────────────────────────────┐
//	   │                                           ▼
//	active ──rebuild──► backfilling ◄──visit── inactive
//	   ▲                   │   │                   ▲
//	   └───────────────────┘   └───────────────────┘
//	   every followee answered   no visit for InactiveAfter
//
//	active       no visit for InactiveAfter    → inactive      followees are notified and stop delivering
//	inactive     visit                         → backfilling   all followees receive a backfill request
//	inactive     rebuild                       → inactive      the next visit requests backfills; with InactiveAfter 0: → backfilling
//	active       rebuild                       → backfilling   the followees of the rebuilt sources receive a backfill request
//	backfilling  rebuild                       → backfilling   all followees receive one; answers to earlier requests are ignored
//	backfilling  every followee has answered   → active
//	backfilling  no visit for InactiveAfter    → inactive      later answers are ignored
//
// A reactivation takes three records, one after the other:
//
//	user-activity   feed service → pools   the user visits
//	edge-modes      pools → fanout         one record per followee: deliver a backfill, and new pins from now on
//	deliveries      fanout → pools         the backfill; its last record carries the BackfillID of the request
//
// Each record is necessary: only the feed service receives the visit, only pools has the followees, and only fanout has
// their recents. The chunk of the visit waits for the backfills, so its Served comes too late to announce the visit. A
// Served also counts as a visit: it reactivates a user whose announcement failed. If the followees do not fit in one
// record, a timer continues after the last notified one. With InactiveAfter 0, no user becomes inactive.
//
// # Rebuild and erasure
//
// A Rebuild deletes the candidates that followees delivered and requests a backfill from the followees. A chunk that cannot
// wait for all answers is degraded with the reason "reactivating".
//
// The rows of a deleted user are deleted in steps, and every current or former followee receives an erasure request. Later
// records for the user are dropped and counted. Candidates of a deleted author are hidden immediately, like deleted
// candidates. Their rows are deleted when the pool is trimmed: the deletion or the end of the edge sets a timer that
// fires one to two days later.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name. The erasure of the user deletes all of them.
//
//	'c'  candidates, first versions   cap: MaxCandidates, visible and hidden each; event: shown; sweep: deleted, or of an erased author
//	'd'  candidates, later versions   as first versions: cap, event, sweep
//	'e'  newest materialized entries  cap: MaxRecentItems
//	'g'  live follows and blocks      event: unfollow, unblock, erasure of the other side
//	'r'  follows over the cap         event: unfollow, erasure of the other side, or they are admitted
//	'w'  the same by time             event: deleted with its 'r' row
//	'f'  counts of follows            erasure; one row
//	'o'  names of former followees    erasure of either side: each of these followees must receive the erasure
//	's'  seen pins                    cap: MaxSeenPins
//	'i'  seen pins by position        cap: MaxSeenPins
//	'p'  early reports                cap: 1000, in one row
//	'q'  unreported pins by position  event: reports; timer, at the time in the Served
//	'u'  pins deferred for too long   cap: 1000, in one row
//	'a'  affinities                   erasure; one row
//	'v'  activity                     erasure; one row
//	'm'  state                        erasure; one row
//
// # Effects and guarantees
//
// Effects are counted: deactivated, reactivated and rebuilt in users; deferred and deferred_shown in candidates;
// admitted_follows in follows that were refused before; logged_visits in visits.
//
// Every record has its effect exactly once; see package rows. Generator reads the same rows and writes none.
//
// # The end of a visit
//
// Package feed describes a visit up to its Served. That record then passes these functions:
//
//  1. serve drops a repeat and limits the times of a fast clock (served.go).
//  2. show gives the unseen items their positions, marks them as seen, writes and sends the materialized entries, and sends
//     the impressions and the record for visit-log (served.go).
//  3. applyDeferrals counts deferred candidates and drops expired ones; trimSeen removes the oldest seen pins (served.go).
//  4. recordVisit restarts the inactivity timer, or reactivates the user (activity.go).
//  5. trimAll removes the seen pins from the pools, once in MaxCandidates/4 items (trim.go).
package pools

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Config holds the caps of the pools; see layout.Config.
type Config = layout.Config

// DefaultConfig returns layout.DefaultConfig.
func DefaultConfig() Config { return layout.DefaultConfig() }

// Group returns the topology of the group. cfg must be valid.
func Group(cfg Config, s *topics.Streams, deleted visibility.GrowingDeletedUsers) rows.Group {
	g := &group{
		cfg: cfg, streams: s, deleted: deleted,
		putters: sync.Pool{New: func() any { return new(putter) }},
		scratch: sync.Pool{New: func() any { return new(layout.Buffers) }},
	}
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{
			rows.Owned(s.Edges, "edge", "user", func(e *schemas.Edge) schemas.UserID { return e.User }, invalidating(g.edge)),
			rows.Batched(s.Deliveries, g.deliver),
			rows.Keyed(s.Candidates, invalidating(g.offer)),
			ofUser(g, s.Served, "served", func(s *schemas.Served) schemas.UserID { return s.User }, invalidating(g.serve)),
			rows.Owned(s.ImpressionReports, "report", "user", func(i *schemas.ClientImpressions) schemas.UserID { return i.User }, g.reported),
			ofUser(g, s.UserActivity, "user activity", func(a *schemas.UserActivity) schemas.UserID { return a.User }, g.userActive),
			ofUser(g, s.Affinities, "affinities", func(a *schemas.Affinities) schemas.UserID { return a.User }, g.affinities).Deferred(),
			ofUser(g, s.Rebuilds, "rebuild", func(r *schemas.Rebuild) schemas.UserID { return r.User }, invalidating(g.rebuild)),
			rows.Keyed(s.Erasures, invalidating(g.erase)),
		},
		Outputs: []string{topics.FeedEntries, topics.Impressions, topics.EdgeModes, topics.FanoutLoop, topics.Rebuilds, topics.Erasures, topics.VisitLog},
		Timer:   g.timer,
		Memory:  newThresholds,
	}
}

// ofUser is rows.Owned for records of a user. It drops those of deleted users.
func ofUser[T any](
	g *group, s topics.Stream[T], what string, user func(*T) schemas.UserID, callback func(tx *rows.Tx, rec *T) error,
) rows.Input {
	return rows.Owned(s, what, "user", user, func(tx *rows.Tx, rec *T) error {
		if g.deleted.Has(user(rec)) {
			tx.Count(dropDeletedUser)
			return nil
		}
		return callback(tx, rec)
	})
}

// group holds the state that the callbacks share. They run concurrently for several partitions.
type group struct {
	cfg     Config
	streams *topics.Streams
	deleted visibility.GrowingDeletedUsers
	putters sync.Pool // of *putter
	scratch sync.Pool // of *scratch
}

// Effects; see the package comment.
const (
	effectDeactivated = "deactivated"
	effectReactivated = "reactivated"
	effectRebuilt     = "rebuilt"
	effectAdmitted    = "admitted_follows"
	effectLogged      = "logged_visits"

	effectDeliveries = "deliveries"         // candidates delivered over an edge, one per pin and user
	effectNeighbors  = "related_deliveries" // candidates delivered by related, one per pin and user
)

// Reasons for intentional drops.
const (
	dropDeletedUser = "deleted_user" // the owner is deleted
	dropDuplicate   = "duplicate"    // a Served that was applied before
	dropShown       = "shown"        // an item of a Served that was seen before
	dropFolloweeCap = "followee_cap" // a follow over the cap of followees
	dropSource      = "source"       // an offer whose source exceeds the cap of sources
	dropCap         = "cap"          // a visible candidate over the cap
	dropHiddenCap   = "hidden_cap"   // a hidden candidate over the cap of hidden ones
	dropErased      = "erased"       // a candidate of a deleted author
	dropDeleted     = "deleted"      // a candidate whose pin was deleted a day ago or more
	dropSeen        = "seen"         // a candidate that has been shown
	dropSeenTrimmed = "seen_trimmed" // a candidate older than the remembered seen pins
	dropExpired     = "expired"      // a candidate older than Expiry
	dropDeferred    = "deferred"     // a candidate that was deferred for too long
	dropRedundant   = "redundant"    // a row of a candidate that its other rows make redundant
)
