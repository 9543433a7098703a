package fanout

import (
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// recipients holds the followers of one step of a walk by the partition of their pools. It is reused: a step allocates one
// string for each partition that has any followers.
type recipients struct {
	limit  int
	shares []share // by partition
	n      int     // followers taken
	last   []byte  // last follower taken
	more   bool    // there are more followers than limit
	users  []schemas.UserID
}

// share holds the followers of one partition.
type share struct {
	names    []byte // concatenated
	ends     []int  // end of each name
	weights  []float32
	weighted bool // a weight is not 1
}

func newRecipients(partitions int32) *recipients {
	return &recipients{shares: make([]share, partitions)}
}

// reset removes the followers and keeps the memory.
func (r *recipients) reset(limit int) {
	r.limit = limit
	for i := range r.shares {
		sh := &r.shares[i]
		sh.names, sh.ends, sh.weights, sh.weighted = sh.names[:0], sh.ends[:0], sh.weights[:0], false
	}
	r.n, r.last, r.more = 0, r.last[:0], false
}

// add takes a follower and reports whether the step takes more. It returns false for the first follower beyond the limit.
func (r *recipients) add(user []byte, weight float32) bool {
	if r.n == r.limit {
		r.more = true
		return false
	}
	r.n++
	r.last = append(r.last[:0], user...)
	sh := &r.shares[topics.PartitionBytes(user, int32(len(r.shares)))]
	sh.names = append(sh.names, user...)
	sh.ends = append(sh.ends, len(sh.names))
	sh.weights = append(sh.weights, weight)
	sh.weighted = sh.weighted || weight != 1
	return true
}

// share returns the followers of a partition and their weights; weights is nil if all are 1. users is valid until the next
// call, weights until the next reset.
func (r *recipients) share(partition int) (users []schemas.UserID, weights []float32) {
	sh := &r.shares[partition]
	names, start := string(sh.names), 0
	r.users = r.users[:0]
	for _, end := range sh.ends {
		r.users = append(r.users, schemas.UserID(names[start:end]))
		start = end
	}
	if sh.weighted {
		weights = sh.weights
	}
	return r.users, weights
}

// firstFrom returns the first partition with followers, starting at first and wrapping around. It returns -1 if there is none.
func (r *recipients) firstFrom(first int) int {
	for n := range r.shares {
		if p := (first + n) % len(r.shares); len(r.shares[p].ends) > 0 {
			return p
		}
	}
	return -1
}
