package fanout

import (
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// step collects the followers of one step of a walk by the partition of their pools. It is reused: a step allocates one
// string for each partition that has any followers.
type step struct {
	limit  int
	shares []share // by partition
	n      int     // followers taken
	last   []byte  // the last one taken
	more   bool    // there are more followers than limit
	users  []schemas.UserID
}

// share holds the followers of one partition.
type share struct {
	names   []byte // concatenated
	ends    []int  // end of each name
	weights []float32
	uneven  bool // a weight is not 1
}

func newStep(partitions int32) *step { return &step{shares: make([]share, partitions)} }

// reset removes the followers and keeps the memory.
func (s *step) reset(limit int) {
	s.limit = limit
	for i := range s.shares {
		sh := &s.shares[i]
		sh.names, sh.ends, sh.weights, sh.uneven = sh.names[:0], sh.ends[:0], sh.weights[:0], false
	}
	s.n, s.last, s.more = 0, s.last[:0], false
}

// add takes a follower and reports whether the step takes more. It returns false for the first follower beyond the limit.
func (s *step) add(user []byte, weight float32) bool {
	if s.n == s.limit {
		s.more = true
		return false
	}
	s.n++
	s.last = append(s.last[:0], user...)
	sh := &s.shares[topics.PartitionBytes(user, int32(len(s.shares)))]
	sh.names = append(sh.names, user...)
	sh.ends = append(sh.ends, len(sh.names))
	sh.weights = append(sh.weights, weight)
	sh.uneven = sh.uneven || weight != 1
	return true
}

// share returns the followers of a partition and their weights; weights is nil if all are 1. users is valid until the next
// call, weights until the next reset.
func (s *step) share(partition int) (users []schemas.UserID, weights []float32) {
	sh := &s.shares[partition]
	names, start := string(sh.names), 0
	s.users = s.users[:0]
	for _, end := range sh.ends {
		s.users = append(s.users, schemas.UserID(names[start:end]))
		start = end
	}
	if sh.uneven {
		weights = sh.weights
	}
	return s.users, weights
}

// shareFrom returns the first partition that has followers, starting at first and wrapping around. It returns -1 if none
// has any.
func (s *step) shareFrom(first int) int {
	for n := range s.shares {
		if p := (first + n) % len(s.shares); len(s.shares[p].ends) > 0 {
			return p
		}
	}
	return -1
}
