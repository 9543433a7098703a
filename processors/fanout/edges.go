package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// edge is a follower and the weight of its edge. A live follow has one row of rowLive, or one of rowInactive while the follower
// is inactive.
type edge struct {
	user   schemas.UserID
	weight float32
}

func (e edge) rows() (live, inactive []byte) {
	return rows.Name(rowLive, e.user), rows.Name(rowInactive, e.user)
}

// activateEdge makes an edge live. Its follower counts as active.
func (o *ownerState) activateEdge(e edge) {
	live, inactive := e.rows()
	o.deleteInactive(inactive)
	o.Put(live, edgeValue(e.weight))
}

// removeEdge removes an edge.
func (o *ownerState) removeEdge(e edge) {
	live, inactive := e.rows()
	o.deleteInactive(inactive)
	o.Delete(live)
}

// deleteInactive deletes a row of rowInactive if it exists.
func (o *ownerState) deleteInactive(row []byte) {
	if o.inactive > 0 && o.Load(row) != nil {
		o.inactive--
		o.Delete(row)
	}
}

// deactivateEdge excludes the edge of an inactive follower from the walks of new pins.
func (o *ownerState) deactivateEdge(e edge) {
	live, inactive := e.rows()
	if o.Load(inactive) == nil {
		o.Delete(live)
		o.inactive++
		o.Put(inactive, edgeValue(e.weight))
	}
}

// reactivateEdge reverses deactivateEdge.
func (o *ownerState) reactivateEdge(e edge) {
	live, inactive := e.rows()
	if value := o.Load(inactive); value != nil {
		o.inactive--
		o.Put(live, value)
		o.Delete(inactive)
	}
}

// setEdgeWeight writes the weight of a live edge, whether its follower is active or not.
func (o *ownerState) setEdgeWeight(e edge) {
	live, inactive := e.rows()
	for _, row := range [][]byte{live, inactive} {
		if o.Load(row) != nil {
			o.Put(row, edgeValue(e.weight))
		}
	}
}

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

func (o *ownerState) weightOf(user schemas.UserID) weight {
	if !o.weighted {
		return defaultWeight
	}
	w, found := rows.Load[weight](o.Owner, rows.Name(rowWeight, user))
	if !found {
		return defaultWeight
	}
	return w
}

// edgeOf returns a follower's edge with its current weight.
func (o *ownerState) edgeOf(user schemas.UserID) edge {
	w := o.weightOf(user)
	return edge{user, w.value}
}

// setWeight stores a user's weight, also before the first follow and after an unfollow.
func (g *group) setWeight(tx *rows.Tx, e *schemas.EdgeWeight) error {
	if err := checkWeight(e); err != nil {
		return err
	}
	if g.isDeleted(e.Followee) {
		tx.Count(dropDeletedUser)
		return nil
	}
	withState(tx, func(o *ownerState) {
		if g.deleted.Has(e.User) { // an affinity may have ended before the erasure could find it
			tx.Count(dropDeletedUser)
			o.deleteIfPresent(rows.Name(rowWeight, e.User))
			return
		}
		g.applyWeight(tx, o, e)
	})
	return nil
}

func (g *group) applyWeight(tx *rows.Tx, o *ownerState, e *schemas.EdgeWeight) {
	before := o.weightOf(e.User)
	after, changed := before.apply(weight{value: e.Weight, time: e.Time})
	if !changed {
		return
	}
	r := registerOf(o.Owner, rowFollow, e.User)
	o.putWeight(e.User, after, r)
	if after.value != before.value && r.live {
		g.sendFollow(tx, e.User, r, after.value)
		o.setEdgeWeight(edge{e.User, after.value})
	}
}

// putWeight writes a follower's weight. A weight of 1 equals a missing row. For a user who never followed, putWeight
// deletes the row: only the weight contains the user, and once the affinity has ended, no erasure would find it.
//
// For a user with a register, the row stays with its time. An older weight that arrives late, for example from a dead letter,
// is then dropped. For a user without a register, a late weight is stored. It has no effect until the user's next weight.
func (o *ownerState) putWeight(user schemas.UserID, w weight, r register) {
	row := rows.Name(rowWeight, user)
	if w.value == 1 && r.id == "" {
		o.deleteIfPresent(row)
		return
	}
	o.weighted = true
	rows.PutValue(o.Owner, row, &w)
}

func checkWeight(e *schemas.EdgeWeight) error {
	if _, err := schemas.ParseUserID(string(e.User)); err != nil {
		return schemas.Bad("edge weight: user: " + err.Error())
	}
	if w := float64(e.Weight); !(w > 0) || math.IsInf(w, 0) {
		return schemas.Bad(fmt.Sprintf("edge weight: %v: want a positive number", e.Weight))
	}
	return nil
}
