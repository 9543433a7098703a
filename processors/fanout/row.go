package fanout

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// An owner's rows, by the first byte of their names. A shard has live and away edges, a queue and a state alone.
const (
	rowAway   = 'a' // follower → weight, as rowLive: an edge that only walks to all take
	rowBlock  = 'b' // actor → register
	rowFree   = 'e' // slot, 4 bytes → nothing: no recent stands there
	rowFollow = 'f' // actor → register
	rowBudget = 'h' // follower → backfillBudget; of followers who followed again
	rowState  = 'k' // state: beside the live edges, which are read after it
	rowLive   = 'l' // follower → weight, 4 bytes; empty: 1. Of each live follow register there is one such row, or one of rowAway
	rowOwn    = 'o' // pin → nothing: the followee is its author
	rowIndex  = 'p' // pin → what is known of it: version, place among the recents, slot
	rowQueue  = 'q' // class, isLive, score, pin → the FanoutStep of a walk that waits for its turn; see queue.go
	rowRecent = 'r' // score, pin → version, body; best first
	rowStep   = 's' // the step that continues the walk with the turn, see expected
	rowWeight = 'w' // follower → weight and the time it was sent; of one without a register only a weight that is not 1
	rowGone   = 'x' // as rowRecent: pins that are deleted, or no longer the followee's
)

func rowOf[T ~string](kind byte, id T) []byte {
	return append(append(make([]byte, 0, 1+len(id)), kind), id...)
}

// weight is how much a follower cares for the followee, last-write-wins by time, the larger at the same time.
type weight struct {
	value float32
	time  schemas.Micros
}

// apply returns the weight after w was sent, and whether that changed anything.
func (old weight) apply(w weight) (weight, bool) {
	if w.time > old.time || w.time == old.time && w.value > old.value {
		return w, true
	}
	return old, false
}

func appendWeight(b []byte, w weight) []byte {
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(w.value))
	return binary.BigEndian.AppendUint64(b, uint64(w.time))
}

// parseWeight reads a row's value; nil is the default, 1: no weight was ever sent.
func parseWeight(value []byte) (weight, error) {
	switch len(value) {
	case 0:
		return weight{value: 1, time: math.MinInt64}, nil
	case 12:
		return weight{
			value: math.Float32frombits(binary.BigEndian.Uint32(value)),
			time:  schemas.Micros(binary.BigEndian.Uint64(value[4:])),
		}, nil
	}
	return weight{}, errors.New("parse weight: cut short or malformed")
}

// liveValue is the value of an edge's row.
func liveValue(weight float32) []byte {
	if weight == 1 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint32(nil, math.Float32bits(weight))
}

// liveWeight reads an edge's value. What is no weight counts as 1: it can only be so by damage, and a walk should not
// end over it.
func liveWeight(value []byte) float32 {
	if len(value) != 4 {
		return 1
	}
	return math.Float32frombits(binary.BigEndian.Uint32(value))
}

// recentRow is the name of a recent's row of a kind; see ranked for the order.
func recentRow(kind byte, score float64, pin schemas.PinID) []byte {
	return append(ranked.AppendScore([]byte{kind}, score), pin...)
}

func freeRow(slot int) []byte {
	return binary.BigEndian.AppendUint32([]byte{rowFree}, uint32(slot))
}
