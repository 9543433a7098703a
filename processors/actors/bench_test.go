package actors_test

import (
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
)

// A backlog of actions of a thousand users, on pins with five facets out of a hundred. The embedded broker runs in the same
// process.
func BenchmarkActions(b *testing.B) {
	w := proctest.New(b)
	at := now()
	const users = 1000
	for i := range users {
		user := schemas.UserID(fmt.Sprintf("user:%d", i))
		var list []*schemas.EnrichedAction
		for n := i; n < b.N; n += users {
			f := schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:a%d", n%20)), Board: schemas.BoardID(fmt.Sprintf("board:%d", n%40))}
			for k := range 3 {
				f.Interests = append(f.Interests, schemas.InterestID(fmt.Sprintf("interest:%d", (n/7+k)%40)))
			}
			list = append(list, action(user, schemas.Click, at, fmt.Sprint("a", n), f))
		}
		proctest.Publish(w, w.Streams.ActionsJoined, string(user), list...)
	}
	b.ResetTimer()
	w.Start("a", actors.Group(actors.DefaultConfig(), w.Streams, deletedUsers{}))
	w.WaitIdle()
}
