package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// weight is the weight of a follower's edge, last-write-wins by time. At equal times the larger weight wins.
type weight struct {
	value float32
	time  schemas.Micros
}

// defaultWeight is older than any other weight.
var defaultWeight = weight{value: 1, time: math.MinInt64}

// apply returns the weight after w, and reports whether it changed.
func (old weight) apply(w weight) (weight, bool) {
	if w.time > old.time || w.time == old.time && w.value > old.value {
		return w, true
	}
	return old, false
}

// Pack implements packed.Row.
func (w *weight) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Float32(p, &w.value)
	packed.Int(p, &w.time)
}

func (o *ownerState) weightOf(user schemas.UserID) (weight, error) {
	if !o.weighted {
		return defaultWeight, nil
	}
	w, found, err := rows.Value[weight](o, rowOf(rowWeight, user))
	if !found {
		return defaultWeight, err
	}
	return w, err
}

// edgeOf returns a follower's edge with its current weight.
func (o *ownerState) edgeOf(user schemas.UserID) (edge, error) {
	w, err := o.weightOf(user)
	return edge{user, w.value}, err
}

// setWeight stores a user's weight, also before the first follow and after an unfollow.
func (g *group) setWeight(tx *rows.Tx, e *schemas.EdgeWeight) error {
	if err := checkWeight(tx.Key(), e); err != nil {
		return err
	}
	if g.isDeleted(e.Followee) {
		tx.Count(dropDeletedUser)
		return nil
	}
	return withState(tx, func(o *ownerState) error {
		if g.deleted.Has(e.User) { // an affinity may have ended before the erasure could find it
			tx.Count(dropDeletedUser)
			return o.deleteIfPresent(rowOf(rowWeight, e.User))
		}
		return g.applyWeight(tx, o, e)
	})
}

func (g *group) applyWeight(tx *rows.Tx, o *ownerState, e *schemas.EdgeWeight) error {
	before, err := o.weightOf(e.User)
	if err != nil {
		return err
	}
	after, changed := before.apply(weight{value: e.Weight, time: e.Time})
	if !changed {
		return nil
	}
	r, err := registerOf(o.Owner, rowFollow, e.User)
	if err != nil {
		return err
	}
	if err := o.putWeight(e.User, after, r); err != nil || after.value == before.value || !r.live {
		return err
	}
	if err := g.sendFollow(tx, e.User, r, after.value); err != nil {
		return err
	}
	return o.setEdgeWeight(edge{e.User, after.value})
}

// putWeight writes a follower's weight. A weight of 1 equals a missing row. For a user who never followed, putWeight
// deletes the row: only the weight contains the user, and once the affinity has ended, no erasure would find it.
//
// For a user with a register, the row stays with its time. An older weight that arrives late, for example from a dead letter,
// is then dropped. For a user without a register, a late weight is stored. It has no effect until the user's next weight.
func (o *ownerState) putWeight(user schemas.UserID, w weight, r register) error {
	row := rowOf(rowWeight, user)
	if w.value == 1 && r.id == "" {
		return o.deleteIfPresent(row)
	}
	o.weighted = true
	return rows.PutValue(o.Owner, row, &w)
}

func checkWeight(key string, e *schemas.EdgeWeight) error {
	if key != string(e.Followee) {
		return schemas.Bad(fmt.Sprintf("edge weight: key %q: want the followee %q", key, e.Followee))
	}
	if _, err := schemas.ParseUserID(string(e.User)); err != nil {
		return schemas.Bad("edge weight: user: " + err.Error())
	}
	if w := float64(e.Weight); !(w > 0) || math.IsInf(w, 0) {
		return schemas.Bad(fmt.Sprintf("edge weight: %v: want a positive number", e.Weight))
	}
	return nil
}
