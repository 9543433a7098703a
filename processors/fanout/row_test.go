package fanout

import (
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestRows_KeepTheirFormat(t *testing.T) {
	golden.Row(t, register{live: true, time: -2, id: "e-1"}, "0201"+"03"+"03652d31")
	golden.Row(t, weight{value: 0.5, time: 300}, "01"+"3fe0000000000000"+"d804")
	golden.Row(t, backfillBudget{start: 7, n: 300, timing: true}, "0201"+"0e"+"d804")
	golden.Row(t, known{version: 7, score: -1, withdrawn: true, slot: noSlot}, "0101"+"01"+"0e"+"bff0000000000000")
	golden.Row(t, state{
		followers: 1, inactive: 2, steps: 3, walking: true, published: true, weighted: true, slotted: true, pushing: true,
		pushed: "pin:1", slots: 4, slotsLive: 5, slotsWithdrawn: 6,
	}, "02ab"+"020406"+"080a0c"+"0570696e3a31")
	golden.Row(t, state{withdrawn: true, pulled: true, filling: true}, "0254"+"000000"+"000000"+"00")
}

func TestEdge_ReadsBackItsWeight(t *testing.T) {
	for _, want := range []float32{1, 0.25, math.MaxFloat32} {
		expect.Equal(t, must.Get(parseEdge(edgeValue(want)))(t), want, "edge")
	}
	expect.Is(t, expect.ErrorOf(parseEdge(edgeValue(2)[:4])), packed.ErrTorn, "truncated")
	must.As[*packed.VersionError](t, expect.ErrorOf(parseEdge([]byte{9, 0, 0, 0, 0})))
}
