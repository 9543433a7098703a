// Package fanout delivers the publications of a followee to its followers.
//
//	owner   followee (a user, a board or an interest)
//	in      follows, publications, edge-weights, edge-modes, fanout-loop, erasures (key followee)
//	rows    follow and block registers by actor; weights, edges and backfill budgets by follower; recents; pins of an
//	        author; queued walks; state
//	out     edges (key user), deliveries (to the partition of the followers, key followee), recents-pulled (key followee
//	        and slot, in the partition of the followee), pins (key pin), fanout-loop, erasures
//
// Each record takes effect exactly once; see package rows.
//
// # Graph
//
// Each actor has two registers: follow/unfollow and block/unblock. Each register is last-write-wins by event time. In a
// tie, unfollow and block win. Registers that are no longer live are kept. Therefore any order and any repetition of
// the same events leads to the same rows. Every change is forwarded as an Edge to the actor. A change of a block of a
// user is also forwarded to that user.
//
// # Publications
//
// A version of a pin that is newer than the known one is delivered to every live follower. It can add, change or
// withdraw the pin. The pools filter and rank it. The followee keeps the Config.MaxRecentPublications publications with
// the highest write-time score as rows. It also keeps the same number of withdrawn ones: deleted, or no longer the
// followee's. A new follower receives all of these as a backfill. A replayed publication gets its place by the current
// rules and is not delivered.
//
// # Walks
//
// A walk delivers a publication to all followers in steps. A step takes up to Config.StepFollowers edges and writes one
// delivery to each partition that has any of these followers. One of the deliveries carries the next step; the pools group
// sends it to fanout-loop after it has applied the delivery. Therefore:
//
//   - the number of followers does not limit a walk, and other followees' deliveries run between two steps;
//   - after a crash, a walk resumes at its last committed step;
//   - a followee has at most one step in flight.
//
// The other walks of a followee wait in a queue. The queue keeps the Config.MaxRecentPublications best publications and
// the Config.MaxRecentPublications best withdrawals, and drops the walks below these; see queue.go.
//
// If the pools do not apply a step within Config.StepTimeout, a timer continues the walk; see timeout.go. The cause is a
// partition that makes no progress, or a delivery in the dead-letter topic.
//
// # Pull
//
// Above Config.PullThreshold followers, a publication starts no walk. The recents are written to slots of the topic
// recents-pulled, and readers merge them into their pools. The mode can change in either direction at any time. A change
// loses nothing, and a pin that is both pushed and pulled meanwhile has one effect. See pull.go.
//
// # Inactive followers
//
// A walk skips inactive followers, except for versions that change or withdraw a pin that their pools may hold. A
// reactivated follower receives the recents as a backfill.
//
// # Erasure
//
// The erasure of a deleted user removes every row, step by step:
//
//   - the rows that the user owns as a followee. Each of the user's pins is deleted on the topic pins,
//     and each follower is notified of the end of the edge;
//   - the user's edge at every followee.
//
// Later records of the user are dropped and counted. A pin that the user publishes later is deleted.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name:
//
//	'f'  follows           erasure of either side; an ended register stays, because a late event must lose against it
//	'b'  blocks            as follows: erasure of either side
//	'w'  weights           event: a weight of 1 of a user who never followed; erasure of either side
//	'l'  live edges        event: unfollow, or the follower becomes inactive; erasure
//	'a'  inactive edges    event: unfollow, or the follower is reactivated; erasure
//	'h'  backfill budgets  timer: the end of an interval with a deferred backfill; erasure of either side
//	'k'  state             event: the state becomes zero; erasure
//	's'  expected steps    timer: fires while no walk runs; erasure
//	'o'  pins of an author event: the pin is deleted or gets another author; erasure
//	'p'  index of recents  cap: with the recent that it belongs to
//	'r'  recents           cap: MaxRecentPublications; erasure
//	'x'  withdrawn recents cap: MaxRecentPublications; erasure
//	'q'  queued walks      event: the walk starts; cap: MaxRecentPublications of each class; erasure
//	'e'  free slots        event: the slot is used; cap: the number of slots that were ever in use; erasure
//
// # Effects
//
// The group counts these effects:
//
//	pulled              deliveries skipped because the followee is pulled
//	inactive            deliveries skipped because the follower is inactive
//	to_pull, to_push    followees that were switched
//	deactivated         edges whose follower became inactive
//	reactivated         edges whose follower was reactivated
//	erased_pins         pins of deleted authors
//	replaced            recents that a replay gave another score
//	deferred_backfills  follows whose backfill waits for the end of the interval
//	timed_out_steps     steps of walks that a timer continued
package fanout

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology. cfg must be valid. partitions is the number of partitions of the topic deliveries.
func Group(cfg Config, partitions int32, s *topics.Streams, deleted visibility.GrowingDeletedUsers) rows.Group {
	g := &group{
		cfg: cfg, streams: s, deleted: deleted, partitions: partitions,
		recipients: sync.Pool{New: func() any { return newRecipients(partitions) }},
	}
	return rows.Group{
		Name: topics.Fanout,
		Inputs: []rows.Input{
			rows.Keyed(s.Follows, g.follow),
			rows.Owned(s.Publications, "publication", "followee", func(p *schemas.Publication) schemas.Followee { return p.Followee }, g.publish),
			rows.Owned(s.EdgeWeights, "edge weight", "followee", func(e *schemas.EdgeWeight) schemas.Followee { return e.Followee }, g.setWeight).
				Deferred(),
			rows.Owned(s.EdgeModes, "edge mode", "followee", func(m *schemas.EdgeMode) schemas.Followee { return m.Followee }, g.setEdgeMode),
			rows.Loop(s.FanoutLoop, g.resume),
			rows.Keyed(s.Erasures, g.erase),
		},
		Outputs: []string{topics.Edges, topics.Deliveries, topics.RecentsPulled, topics.FanoutLoop, topics.Pins, topics.Erasures},
		Timer:   g.timer,
	}
}

// group holds the state that the callbacks share. The callbacks of several partitions run concurrently.
type group struct {
	cfg        Config
	streams    *topics.Streams
	deleted    visibility.GrowingDeletedUsers
	partitions int32
	recipients sync.Pool // of *recipients
}

// Reasons for dropped records.
const (
	dropDeletedUser = "deleted_user" // the follower or the followee is deleted
	dropOldVersion  = "old_version"  // a newer version of the pin is known
	dropOldStep     = "old_step"     // the walk has continued without this step
	dropQueueCap    = "queue_cap"    // a walk below the cap of the queue
)

// Effects; see the package comment.
const (
	effectPulled      = "pulled"
	effectInactive    = "inactive"
	effectToPull      = "to_pull"
	effectToPush      = "to_push"
	effectDeactivated = "deactivated"
	effectReactivated = "reactivated"
	effectErased      = "erased_pins"
	effectReplaced    = "replaced"
	effectDeferred    = "deferred_backfills"
	effectTimedOut    = "timed_out_steps"
)
