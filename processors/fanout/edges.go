package fanout

import (
	"github.com/smartfeed/smartfeed/schemas"
)

// edge is a follower and the weight of its edge. A live follow has one row of rowLive, or one of rowInactive while the follower
// is inactive.
type edge struct {
	user   schemas.UserID
	weight float32
}

func (e edge) rows() (live, inactive []byte) {
	return rowOf(rowLive, e.user), rowOf(rowInactive, e.user)
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
	if o.inactive == 0 {
		return
	}
	if o.Load(row) != nil {
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
