package rules_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Two thirds of a visit come from followees and one third from interests, without repeating an author among three
// consecutive items. Therefore the second pin by bob, which would be next, is skipped, and Explain returns the reason.
func ExampleFeed_Make() {
	feed := rules.Feed{
		Shares:      map[schemas.Source]float64{schemas.Following: 2, schemas.FromInterest: 1},
		ShareWindow: 100,
		Caps:        rules.Caps{Window: 3, Author: 1},
	}
	by := func(author schemas.UserID, pin schemas.PinID, score schemas.PoolScore) rules.Candidate {
		return rules.Candidate{Pin: pin, PoolScore: score, Facets: schemas.Facets{Author: author}}
	}
	waiting := []rules.Pool{
		{Source: schemas.Following, Candidates: []rules.Candidate{
			by("user:bob", "pin:tea", 9), by("user:bob", "pin:cup", 8), by("user:carol", "pin:boat", 2),
		}},
		{Source: schemas.FromInterest, Candidates: []rules.Candidate{by("user:dan", "pin:sea", 5)}},
	}
	visit := rules.Visit{User: "user:ada", Time: 1, Limit: 3}
	for _, item := range feed.Make(visit, waiting, rules.Signals{}).Items {
		fmt.Println(item.Pin, "from", item.Source)
	}
	why := feed.Explain(visit, waiting, rules.Signals{}, "pin:cup")
	fmt.Println("pin:cup is", why.Fate, "because of", why.Reason)
	// Output:
	// pin:tea from following
	// pin:sea from interest
	// pin:boat from following
	// pin:cup is waiting because of cap_author
}
