package pools

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// affinities stores the user's affinities for the generator. Later records are newer states.
func (g *group) affinities(tx *rows.Tx, a *schemas.Affinities) error {
	for _, top := range a.Top {
		if math.IsNaN(top.Value) || math.IsInf(top.Value, 0) {
			return schemas.Bad(fmt.Sprintf("affinities: value of %q: %v: want a finite number", top.Facet, top.Value))
		}
	}
	rows.PutRecord(tx.Own(), []byte{layout.KindAffinities}, g.streams.Affinities, a)
	return nil
}
