package actors

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestRows_KeepTheirFormat(t *testing.T) {
	golden.Row(t, facet{Amount: decay.Amount{Value: 1.5, Time: 300}, sentWeight: 2, sentAt: 1, timerAt: -1},
		"02"+"3ff8000000000000"+"d804"+"4000000000000000"+"02"+"01")
	golden.Row(t, rows.Number(70_000), "01"+"e0c508")
	golden.Row(t, sent{at: 1, due: 2, facets: 70_000}, "02"+"02"+"04"+"e0c508")
	golden.Row(t, recentActions{{Neighbor: schemas.Neighbor{ID: "p", Version: 1, Quality: 1, Facets: schemas.Facets{Author: "a"}, Created: 2}, Weight: 1, Time: -1}},
		"04"+"01"+"01"+"3ff0000000000000"+"0170"+"02"+"3ff0000000000000"+"04"+"01"+"0161"+"00")
}
