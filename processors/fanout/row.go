package fanout

import (
	"encoding/binary"
	"math"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// The kinds of a followee's rows, by the first byte of their names.
const (
	rowInactive  = 'a' // follower → weight, as rowLive: an edge of an inactive follower, which only walks to all followers include
	rowBlock     = 'b' // actor → register
	rowFree      = 'e' // slot (4 bytes) → empty: the slot is free
	rowFollow    = 'f' // actor → register
	rowBudget    = 'h' // follower → backfillBudget, for followers who followed again
	rowState     = 'k' // state; next to the live edges, which are read after it
	rowLive      = 'l' // follower → weight, see edgeValue. Each live follow register has one such row or one of rowInactive
	rowOwn       = 'o' // pin → empty: the followee is its author
	rowIndex     = 'p' // pin → known: version, place among the recents, slot
	rowQueue     = 'q' // class, score, pin → the Continuation of a queued walk; see queue.go
	rowRecent    = 'r' // score, pin → recent; best first
	rowStep      = 's' // the step that continues the running walk; see expected
	rowWeight    = 'w' // follower → weight and the time it was sent; without a register, only weights other than 1
	rowWithdrawn = 'x' // as rowRecent: pins that are deleted or no longer the followee's
)

// recentRow returns the name of a recent's row. Package ranked describes the order.
func recentRow(kind byte, score schemas.BaseScore, pin schemas.PinID) []byte {
	return append(ranked.AppendScore([]byte{kind}, score), pin...)
}

func freeRow(slot int) []byte {
	return binary.BigEndian.AppendUint32([]byte{rowFree}, uint32(slot))
}

// formatEdge is the version of the format of edges.
const formatEdge = 1

// edgeValue returns the value of an edge's row: empty for a weight of 1, otherwise the version and the weight (4 bytes). A walk
// reads thousands of edges per record.
func edgeValue(weight float32) []byte {
	if weight == 1 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint32([]byte{formatEdge}, math.Float32bits(weight))
}

// parseEdge returns the weight in the value of an edge's row.
func parseEdge(value []byte) (weight float32, err error) {
	switch {
	case len(value) == 0:
		return 1, nil
	case value[0] != formatEdge:
		return 0, &packed.VersionError{Got: value[0], Want: formatEdge}
	case len(value) != 5:
		return 0, packed.ErrTorn
	}
	return math.Float32frombits(binary.BigEndian.Uint32(value[1:])), nil
}
