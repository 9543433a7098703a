package pools

import (
	"math"
	"testing"

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
		graph  graph
		source schemas.Source
		want   bool
	}{
		"no edge":                             {graph{}, schemas.Following, false},
		"follows the author":                  {graph{follows: to("user:a")}, schemas.Following, true},
		"follows the board":                   {graph{follows: to("board:b")}, schemas.Following, true},
		"an interest does not justify":        {graph{follows: to("interest:x")}, schemas.Following, false},
		"follows an interest":                 {graph{follows: to("interest:y")}, schemas.FromInterest, true},
		"an author is no interest":            {graph{follows: to("user:a", "board:b")}, schemas.FromInterest, false},
		"related needs no edge":               {graph{}, schemas.Related, true},
		"offered needs no edge":               {graph{}, "editors", true},
		"blocks the author":                   {graph{follows: to("board:b"), blocks: set("user:a")}, schemas.Following, false},
		"is blocked by the author":            {graph{blockedBy: set("user:a")}, schemas.Related, false},
		"blocks the board":                    {graph{follows: to("user:a"), blocks: set("board:b")}, schemas.Following, false},
		"blocks an interest":                  {graph{blocks: set("interest:y")}, "editors", false},
		"a block of somebody else":            {graph{blocks: set("user:z"), blockedBy: set("board:b")}, "editors", true},
		"a followee that blocks stays hidden": {graph{follows: to("user:a"), blockedBy: set("user:a")}, schemas.Following, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := visible(c.graph, c.source, &f); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	own := schemas.Facets{Author: owner, Board: "board:b"}
	if visible(graph{follows: to("board:b")}, schemas.Following, &own) {
		t.Error("the user's own pin is visible")
	}
	boardless := schemas.Facets{Author: "user:z"}
	if !visible(graph{follows: to("")}, "editors", &boardless) {
		t.Error("a pin on no board is hidden")
	}
}

// visible reports whether a pin that is not deleted is visible to the owner in a source.
func visible(g graph, source schemas.Source, f *schemas.Facets) bool {
	v := view{user: owner, graph: g, deleted: nobody{}, oldest: math.MinInt64}
	return v.standing(source, &candidate{candidateBody: candidateBody{Facets: *f}}) == waiting
}
