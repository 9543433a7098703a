package generator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A custom source, score and rule. Programs pass them to product.Open. The pools of this generator are empty. Therefore a
// visit shows the candidates of the source that the rule admits, by score.
func ExampleExtensions() {
	own := generator.Extensions{
		Sources: []generator.ExtensionSource{{Name: "editors", Limit: 10, Share: 0.2, Offer: chosen}},
		Score: func(_ context.Context, _ schemas.UserID, _ string, candidates []generator.Scored) (map[schemas.PinID]float64, error) {
			return map[schemas.PinID]float64{"pin:tea": 5}, nil
		},
		Admit: func(_ schemas.UserID, _ string, c rules.Candidate) bool { return c.Author != "user:mallory" },
	}
	generator, err := generator.New(pools.DefaultConfig(), generator.DefaultConfig(), generator.Deps{
		Rows: empty{}, End: empty{}, Deleted: empty{}, Streams: &topics.Streams{}, Extensions: own,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer generator.Close()
	chunk, err := generator.Chunk(context.Background(), schemas.ChunkRequest{
		Served: "visit-1", User: "user:ada", Feed: rules.Home, Limit: 10, Time: schemas.MicrosOf(time.Now()),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range chunk.Served.Items {
		fmt.Println(item.Pin, "from", item.Source)
	}
	// Output:
	// pin:tea from editors
	// pin:boat from editors
}

// chosen returns the editors' choice, which is the same for every user.
func chosen(context.Context, schemas.UserID, string, int) ([]schemas.Candidate, error) {
	now := schemas.MicrosOf(time.Now())
	by := func(author schemas.UserID, pin schemas.PinID, score schemas.PoolScore) schemas.Candidate {
		return schemas.Candidate{Pin: pin, Facets: schemas.Facets{Author: author}, Created: now, PoolScore: score}
	}
	return []schemas.Candidate{
		by("user:mallory", "pin:spam", 3), by("user:bob", "pin:boat", 2), by("user:bob", "pin:tea", 1),
	}, nil
}

// empty is a partition without rows, a topic without records, and an empty set of deleted users.
type empty struct{}

func (n empty) Read(_ context.Context, _ string, f func(rows.Snapshot) error) error { return f(n) }
func (empty) Changed(string) <-chan struct{}                                        { return nil }
func (empty) Get([]byte) ([]byte, error)                                            { return nil, nil }
func (empty) Scan(rows.Scan, func(row, value []byte) bool) error                    { return nil }
func (empty) Applied(string) int64                                                  { return -1 }
func (empty) Session() uint64                                                       { return 1 }
func (empty) Since() time.Time                                                      { return time.Time{} }
func (empty) Partition() int32                                                      { return 0 }
func (empty) End(context.Context, string, int32) (int64, error)                     { return 0, nil }
func (empty) Has(schemas.UserID) bool                                               { return false }
func (empty) Len() int                                                              { return 0 }
func (empty) Note(schemas.UserID, schemas.Micros)                                   {}
