package visibility_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

type noneDeleted struct{}

func (noneDeleted) Has(schemas.UserID) bool { return false }

// A viewer who blocks an interest is not shown pins that have it.
func ExampleViewer_Hides() {
	graph := visibility.Graph{Blocks: map[schemas.ID]struct{}{"interest:boats": {}}}
	viewer := visibility.NewViewer("user:ada", graph, noneDeleted{})
	pin := visibility.Pin{PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:bob", Interests: []schemas.InterestID{"interest:boats"}}}}
	fmt.Println(viewer.Hides(&pin, 0))
	// Output: block
}
