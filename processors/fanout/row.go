package fanout

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// The kinds of an owner's rows, by the first byte of their names. A shard has only edges, a queue, an expected step and a
// state.
const (
	rowAway   = 'a' // follower → weight, as rowLive: an edge of an inactive follower, which only walks to all followers take
	rowBlock  = 'b' // actor → register
	rowFree   = 'e' // slot (4 bytes) → empty: the slot is free
	rowFollow = 'f' // actor → register
	rowBudget = 'h' // follower → backfillBudget, for followers who followed again
	rowState  = 'k' // state; next to the live edges, which are read after it
	rowLive   = 'l' // follower → weight (4 bytes; empty: 1). Each live follow register has one such row or one of rowAway
	rowOwn    = 'o' // pin → empty: the followee is its author
	rowIndex  = 'p' // pin → known: version, place among the recents, slot
	rowQueue  = 'q' // class, isLive, score, pin → the FanoutStep of a queued walk; see queue.go
	rowRecent = 'r' // score, pin → version, body; best first
	rowStep   = 's' // the step that continues the running walk; see expected
	rowWeight = 'w' // follower → weight and the time it was sent; without a register, only weights other than 1
	rowGone   = 'x' // as rowRecent: pins that are deleted or no longer the followee's
)

func rowOf[T ~string](kind byte, id T) []byte {
	return append(append(make([]byte, 0, 1+len(id)), kind), id...)
}

// weight is the weight of a follower's edge, last-write-wins by time. At equal times the larger weight wins.
type weight struct {
	value float32
	time  schemas.Micros
}

// apply returns the weight after w, and reports whether it changed.
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

// parseWeight parses a row's value. For an empty value it returns the default weight of 1, older than any other.
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

// liveValue returns the value of an edge's row.
func liveValue(weight float32) []byte {
	if weight == 1 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint32(nil, math.Float32bits(weight))
}

// liveWeight parses the value of an edge's row. An invalid value counts as 1: it can only come from damage, and must not
// stop a walk.
func liveWeight(value []byte) float32 {
	if len(value) != 4 {
		return 1
	}
	return math.Float32frombits(binary.BigEndian.Uint32(value))
}

// recentRow returns the name of a recent's row of a kind. Package ranked describes the order.
func recentRow(kind byte, score float64, pin schemas.PinID) []byte {
	return append(ranked.AppendScore([]byte{kind}, score), pin...)
}

func freeRow(slot int) []byte {
	return binary.BigEndian.AppendUint32([]byte{rowFree}, uint32(slot))
}
