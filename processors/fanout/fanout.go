// Package fanout delivers what a followee publishes to everyone who follows it.
//
//	owner   followee: a user, a board or an interest; or a shard, which has a part of a followee's edges
//	in      follows, publications, edge-weights, edge-modes (all keyed by the followee), fanout-loop and erasures (by the
//	        owner)
//	rows    registers (follow and block of each actor), weights, edges and backfill budgets by follower; recents; an
//	        author's pins; walks that wait; state
//	out     edges (key user), deliveries (to the followers' partition, key followee), recents-pulled (key followee and
//	        slot, in the followee's partition), pins (key pin), fanout-loop, erasures
//
// Graph. Follow/unfollow and block/unblock are two registers for each actor, last-write-wins by event time; at the same
// time unfollow and block win. Dead ones are kept, so any order and any repetition of the same events ends in the same
// rows. Every change is forwarded as an Edge to the actor, a change of a block of a user to that user, too.
//
// Publications. A version of a pin that is newer than the one known goes to every live follower, whether it brings the
// pin, changes it or takes it away: what a pool makes of it is the pool's business. The newest Recents publications by
// write-time score are kept as rows, and as many of what is deleted or no longer the followee's; a new follower is
// brought all of these. One that is replayed takes the place that it has by the rules of now, and is brought to nobody.
//
// Walks. A walk over the followers takes at most StepEdges of them, sends one record to each partition that has any, and
// leaves the rest to a record in fanout-loop, which the pools send when they have applied what it follows: no account
// is too big, a crash resumes the walk where it was, a walk never has more than one step under way among one owner's
// edges, and the deliveries of others take their turn in between. Walks of one followee take turns, too: the others wait in a
// queue. It keeps the Recents best publications and the Recents best withdrawals, and drops the walks below these, see
// queue.go. A step that the pools have not applied within StepTimeout, because a partition stands or the delivery is a dead
// letter, does not hold the walk up: a timer continues it, see timeout.go. Above SpreadAbove followers the edges move to
// shards, one a partition, and a walk runs in all of them at once.
//
// Pull. Above PullAbove followers a publication begins no walk: the recents stand in slots of the topic recents-pulled,
// from which readers merge them into their pools. A follower who is away is not walked to, but by versions that change
// or take away what may be in the pool already; whoever comes back is brought the recents. Switching, in either
// direction and at any moment, loses nothing; what is there twice in between has one effect.
//
// Erasing. Of a deleted user every row goes, step by step: what the user owns as a followee, shards included, whereby each
// pin of theirs is deleted on the topic pins and each follower is told that the edge is no more; and the user's edge at
// every followee. What comes of the user afterwards is dropped and counted, and a pin that comes is deleted.
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'f'  follows           erasure of either side; a dead one stays, because a late event must lose against it
//	'b'  blocks            as follows: erasure of either side
//	'w'  weights           event: a weight of 1 of a user who never followed; erasure of either side
//	'l'  live edges        event: unfollow, or the follower becomes inactive; erasure
//	'a'  inactive edges    event: unfollow, or the follower returns; erasure
//	'h'  backfill budgets  event: the deferred backfill is delivered; erasure of either side
//	'k'  state             event: nothing is left to say; erasure
//	'o'  pins of an author event: the pin is deleted or has another author; erasure
//	'p'  index of recents  cap: with the recent it belongs to
//	'r'  recents           cap: Recents; erasure
//	'x'  former recents    cap: Recents; erasure
//	'q'  walks that wait   event: their turn comes; cap: Recents of each class; erasure
//	's'  step expected     event: the timer fires and no walk runs; erasure
//	'e'  free slots        event: the slot is used; cap: as many as slots were ever in use; erasure
//
// Every record has its effect exactly once, see package rows.
//
// Effects are counted: pulled, deliveries that were not made because the followee is pulled; away, because the follower
// is; to_pull, to_push and spread, followees that were switched; went_away and came_back, edges; erased_pins, of deleted
// authors; replaced, recents that a replay gave another score; deferred_backfills, follows whose backfill waits for the end
// of the interval; timed_out_steps, of walks that a timer continued.
package fanout

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers knows who is gone for good, and is told of whom it may not have heard yet. It is called from several
// goroutines.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	Note(user schemas.UserID, at schemas.Micros)
}

// Group returns the topology. cfg must be valid, partitions is the number of the deliveries' partitions.
func Group(cfg Config, partitions int32, s *topics.Streams, deleted DeletedUsers) rows.Group {
	g := &group{
		cfg: cfg, streams: s, deleted: deleted, partitions: partitions,
		steps: sync.Pool{New: func() any { return newStep(partitions) }},
	}
	return rows.Group{
		Name: topics.Fanout,
		Inputs: []rows.Input{
			rows.Keyed(s.Follows, g.follow),
			rows.Keyed(s.Publications, g.publish),
			rows.Keyed(s.EdgeWeights, g.weigh),
			rows.Keyed(s.EdgeModes, g.mode),
			rows.Loop(s.FanoutLoop, g.step),
			rows.Keyed(s.Erasures, g.erase),
		},
		Outputs: []string{topics.Edges, topics.Deliveries, topics.RecentsPulled, topics.FanoutLoop, topics.Pins, topics.Erasures},
		Timer:   g.timer,
	}
}

// group is what the callbacks share. They run for several partitions at once.
type group struct {
	cfg        Config
	streams    *topics.Streams
	deleted    DeletedUsers
	partitions int32
	steps      sync.Pool // of *step
}

func (g *group) partition(user schemas.UserID) int32 {
	return topics.Partition(string(user), g.partitions)
}

// Reasons of what is dropped on purpose.
const (
	dropDeletedUser = "deleted_user" // the follower or the followee is gone
	dropOldVersion  = "old_version"  // a newer version of the pin came before
	dropOldStep     = "old_step"     // the walk has continued without the step
	dropQueueCap    = "queue_cap"    // a queued walk over the cap of the queue
)

// Effects, see the package.
const (
	effectPulled   = "pulled"
	effectAway     = "away"
	effectToPull   = "to_pull"
	effectToPush   = "to_push"
	effectSpread   = "spread"
	effectWentAway = "went_away"
	effectCameBack = "came_back"
	effectErased   = "erased_pins"
	effectReplaced = "replaced"
	effectDeferred = "deferred_backfills"
	effectTimedOut = "timed_out_steps"
)
