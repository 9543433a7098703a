// Package fanout delivers what a followee publishes to everyone who follows it.
//
//	owner   followee: a user, a board or an interest
//	in      follows, publications, edge-weights, fanout-loop (all keyed by the followee)
//	rows    registers (follow and block of each actor), weights and live edges by follower; recents
//	out     edges (key user), deliveries (to the followers' partition, key followee), fanout-loop
//
// Graph. Follow/unfollow and block/unblock are two registers for each actor, last-write-wins by event time; at the same
// time unfollow and block win. Dead ones are kept, so any order and any repetition of the same events ends in the same
// rows. Every change is forwarded as an Edge to the actor, a change of a block of a user to that user, too.
//
// Publications. A version of a pin that is newer than the one known goes to every live follower, whether it brings the
// pin, changes it or takes it away: what a pool makes of it is the pool's business. A walk over the followers takes at
// most StepEdges of them, sends one record to each partition that has any, and leaves the rest to a record in
// fanout-loop: no account is too big, a crash resumes the walk where it was, and other followees of the partition take
// their turn in between. The newest Recents publications by write-time score are kept as rows; a new follower is brought
// these.
//
// Every record has its effect exactly once, see package rows. Follows of deleted users are dropped and counted.
package fanout

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers knows who is gone for good. It is asked from several goroutines.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
}

// Group returns the topology. cfg must be valid, partitions is the number of the deliveries' partitions.
func Group(cfg Config, partitions int32, s *topics.Streams, deleted DeletedUsers) rows.Group {
	g := &group{
		cfg: cfg, streams: s, deleted: deleted,
		steps: sync.Pool{New: func() any { return newStep(cfg.StepEdges, partitions) }},
	}
	g.partition = func(user schemas.UserID) int32 { return topics.Partition(string(user), partitions) }
	return rows.Group{
		Name: topics.Fanout,
		Inputs: []rows.Input{
			rows.Keyed(s.Follows, g.follow),
			rows.Keyed(s.Publications, g.publish),
			rows.Keyed(s.EdgeWeights, g.weigh),
			rows.Loop(s.FanoutLoop, g.walkOn),
		},
		Outputs: []string{topics.Edges, topics.Deliveries, topics.FanoutLoop},
	}
}

// group is what the callbacks share. They run for several partitions at once.
type group struct {
	cfg       Config
	streams   *topics.Streams
	deleted   DeletedUsers
	partition func(schemas.UserID) int32
	steps     sync.Pool // of *step
}

// Reasons of what is dropped on purpose.
const (
	dropDeletedUser = "deleted_user" // the follower is gone
	dropOldVersion  = "old_version"  // a newer version of the pin came before
)
