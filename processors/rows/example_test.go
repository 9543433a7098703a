package rows_test

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A group that counts the follow events of each followee exactly once: the row and the applied offset are in one
// transaction. rows.New creates a runner of the group. In tests, use package proctest.
func ExampleGroup() {
	var streams *topics.Streams // from topics.Open
	count := func(tx *rows.Tx, _ *schemas.FollowEvent) error {
		rows.AddNumber(tx.Own(), []byte("n"), 1)
		return nil
	}
	group := func() rows.Group {
		return rows.Group{Name: "counter", Inputs: []rows.Input{rows.Keyed(streams.Follows, count)}}
	}
	_ = group
}
