package pools

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// edge applies the current state of a register. Later records of a register are newer states; see schemas.Edge.
func (g *group) edge(tx *rows.Tx, e *schemas.Edge) error {
	register, err := checkEdge(tx.Key(), e)
	if err != nil {
		return err
	}
	if g.deleted.Has(e.User) {
		tx.Count(dropDeletedUser)
		g.repeatErasure(tx, e)
		return nil
	}
	own := tx.Own()
	if e.Erased {
		sweepLater(tx, e.User)
	}
	switch {
	case register == layout.RegisterFollow:
		return g.follow(tx, own, e)
	case e.Live:
		own.Put(layout.GraphRow(register, e.Other), []byte{})
		return nil
	}
	endBlock(own, register, e)
	return nil
}

func checkEdge(key string, e *schemas.Edge) (register byte, err error) {
	if key != string(e.User) {
		return 0, schemas.Bad(fmt.Sprintf("edge: key %q: want the user %q", key, e.User))
	}
	if _, err := schemas.ParseFollowee(string(e.Other)); err != nil {
		return 0, schemas.Bad("edge: other: " + err.Error())
	}
	if w := float64(e.Weight); !(w >= 0) || math.IsInf(w, 0) {
		return 0, schemas.Bad(fmt.Sprintf("edge: weight %v: want 0 or more", e.Weight))
	}
	switch e.Kind {
	case schemas.FollowEdge:
		return layout.RegisterFollow, nil
	case schemas.BlockEdge:
		return layout.RegisterBlock, nil
	case schemas.BlockedEdge:
		return layout.RegisterBlockedBy, nil
	}
	return 0, schemas.Bad(fmt.Sprintf("edge: kind %q: want follow, block or blocked", e.Kind))
}
