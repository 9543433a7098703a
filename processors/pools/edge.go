package pools

import (
	"cmp"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// edge applies the current state of a register. Later records of a register are newer states; see schemas.Edge.
func (g *group) edge(tx *rows.Tx, e *schemas.Edge) error {
	register, err := checkEdge(e)
	if err != nil {
		return err
	}
	if g.deleted.Has(e.User) {
		tx.Count(dropDeletedUser)
		if !e.Erased && e.Kind != schemas.BlockedEdge { // the followee has not processed the erasure yet
			g.sendErasure(tx, &schemas.Erasure{User: e.User, Time: e.Time}, e.Other)
		}
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

func checkEdge(e *schemas.Edge) (register byte, err error) {
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

// follow applies the current state of a follow.
func (g *group) follow(tx *rows.Tx, own rows.Owner, e *schemas.Edge) error {
	f, err := g.followsOf(tx, own)
	if err != nil {
		return err
	}
	if e.Live {
		entered, err := f.put(follow{e.Other, e.Time, cmp.Or(e.Weight, 1)})
		if err != nil {
			return err
		}
		g.notifyNewFollowee(tx, own, e, entered)
		return f.close()
	}
	wasRefused, err := f.end(e.Other)
	if err != nil {
		return err
	}
	endFollow(own, e, wasRefused)
	return f.close()
}

// followsOf opens a user's follows. The followees of refused and admitted follows are notified.
func (g *group) followsOf(tx *rows.Tx, own rows.Owner) (*follows, error) {
	return openFollows(own, g.cfg.MaxFollowees, func(other schemas.ID, admitted bool) error {
		if !admitted {
			tx.Count(dropFolloweeCap)
			g.sendMode(tx, other, true)
			return nil
		}
		tx.Effect(effectAdmitted, 1)
		a := activityOf(tx, own)
		g.sendMode(tx, other, a.Inactive)
		return nil
	})
}
