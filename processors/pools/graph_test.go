package pools

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestVisible(t *testing.T) {
	set := func(ids ...schemas.ID) map[schemas.ID]struct{} {
		m := map[schemas.ID]struct{}{}
		for _, id := range ids {
			m[id] = struct{}{}
		}
		return m
	}
	to := func(ids ...schemas.ID) map[schemas.ID]float32 {
		m := map[schemas.ID]float32{}
		for _, id := range ids {
			m[id] = 1
		}
		return m
	}
	f := schemas.Facets{Author: "user:a", Board: "board:b", Interests: []schemas.InterestID{"interest:x", "interest:y"}}
	for name, c := range map[string]struct {
		graph  layout.Graph
		source schemas.Source
		want   bool
	}{
		"no edge":                             {layout.Graph{}, schemas.Following, false},
		"follows the author":                  {layout.Graph{Follows: to("user:a")}, schemas.Following, true},
		"follows the board":                   {layout.Graph{Follows: to("board:b")}, schemas.Following, true},
		"an interest does not justify":        {layout.Graph{Follows: to("interest:x")}, schemas.Following, false},
		"follows an interest":                 {layout.Graph{Follows: to("interest:y")}, schemas.FromInterest, true},
		"an author is no interest":            {layout.Graph{Follows: to("user:a", "board:b")}, schemas.FromInterest, false},
		"related needs no edge":               {layout.Graph{}, schemas.Related, true},
		"offered needs no edge":               {layout.Graph{}, "editors", true},
		"blocks the author":                   {layout.Graph{Follows: to("board:b"), Blocks: set("user:a")}, schemas.Following, false},
		"is blocked by the author":            {layout.Graph{BlockedBy: set("user:a")}, schemas.Related, false},
		"blocks the board":                    {layout.Graph{Follows: to("user:a"), Blocks: set("board:b")}, schemas.Following, false},
		"blocks an interest":                  {layout.Graph{Blocks: set("interest:y")}, "editors", false},
		"a block of somebody else":            {layout.Graph{Blocks: set("user:z"), BlockedBy: set("board:b")}, "editors", true},
		"a followee that blocks stays hidden": {layout.Graph{Follows: to("user:a"), BlockedBy: set("user:a")}, schemas.Following, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := poolstest.Visible(c.graph, c.source, &f); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	own := schemas.Facets{Author: poolstest.Owner, Board: "board:b"}
	if poolstest.Visible(layout.Graph{Follows: to("board:b")}, schemas.Following, &own) {
		t.Error("the user's own pin is visible")
	}
	boardless := schemas.Facets{Author: "user:z"}
	if !poolstest.Visible(layout.Graph{Follows: to("")}, "editors", &boardless) {
		t.Error("a pin on no board is hidden")
	}
}
