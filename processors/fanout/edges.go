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
func (o *ownerState) activateEdge(e edge) error {
	live, inactive := e.rows()
	if err := o.deleteInactive(inactive); err != nil {
		return err
	}
	return o.Put(live, edgeValue(e.weight))
}

// removeEdge removes an edge.
func (o *ownerState) removeEdge(e edge) error {
	live, inactive := e.rows()
	if err := o.deleteInactive(inactive); err != nil {
		return err
	}
	return o.Delete(live)
}

// deleteInactive deletes a row of rowInactive if it exists.
func (o *ownerState) deleteInactive(row []byte) error {
	if o.inactive == 0 {
		return nil
	}
	value, err := o.Get(row)
	if err != nil || value == nil {
		return err
	}
	o.inactive--
	return o.Delete(row)
}

// deactivateEdge excludes the edge of an inactive follower from the walks of new pins.
func (o *ownerState) deactivateEdge(e edge) error {
	live, inactive := e.rows()
	value, err := o.Get(inactive)
	if err != nil || value != nil {
		return err
	}
	if err := o.Delete(live); err != nil {
		return err
	}
	o.inactive++
	return o.Put(inactive, edgeValue(e.weight))
}

// reactivateEdge reverses deactivateEdge.
func (o *ownerState) reactivateEdge(e edge) error {
	live, inactive := e.rows()
	value, err := o.Get(inactive)
	if err != nil || value == nil {
		return err
	}
	o.inactive--
	if err := o.Put(live, value); err != nil {
		return err
	}
	return o.Delete(inactive)
}

// setEdgeWeight writes the weight of a live edge, whether its follower is active or not.
func (o *ownerState) setEdgeWeight(e edge) error {
	live, inactive := e.rows()
	for _, row := range [][]byte{live, inactive} {
		value, err := o.Get(row)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		if err := o.Put(row, edgeValue(e.weight)); err != nil {
			return err
		}
	}
	return nil
}
