package pools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A pin below the threshold of a full pool leaves no row and is counted. After any event that can free a place, and after a
// restart, the next pin is put.
func TestThreshold_DiscardedByEventsThatFreePlaces(t *testing.T) {
	const cap = 10
	r := newRig(t, pools.Config{MaxCandidates: cap, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour})
	tests := map[string]func(user schemas.UserID){
		"a follow":   func(u schemas.UserID) { r.edge(u, schemas.FollowEdge, "user:b", true) },
		"an unblock": func(u schemas.UserID) { r.edge(u, schemas.BlockEdge, "user:b", false) },
		"a visit": func(u schemas.UserID) {
			s := &schemas.Served{ID: "s", User: u, Items: []schemas.ServedItem{{Pin: "pin:922"}}}
			proctest.Publish(r.Wire, r.Streams.Served, string(u), s)
		},
		"an offer": func(u schemas.UserID) {
			o := &schemas.Offer{ID: "o", Time: 1, User: u, Source: "editors", Candidates: []schemas.Candidate{{Pin: "pin:700", Created: 1}}}
			proctest.Publish(r.Wire, r.Streams.Candidates, string(u), o)
		},
		"a deletion": func(u schemas.UserID) {
			d := pin(922, 922, "user:a")
			d.Version, d.Deleted = d.Version+1, true
			r.deliver(schemas.Following, u, 1, d)
		},
	}
	users := map[string]schemas.UserID{"a restart": "user:restart"}
	for name := range tests {
		users[name] = schemas.UserID("user:" + strings.ReplaceAll(name, " ", "-"))
	}
	for _, user := range users {
		r.edge(user, schemas.FollowEdge, "user:a", true)
	}
	r.WaitIdle()
	for _, user := range users {
		for n := range 2*cap + 3 { // the second trim happens just before the end, and the next one much later
			r.deliver(schemas.Following, user, 1, pin(900+n, schemas.Micros(900+n), "user:a"))
		}
	}
	r.WaitIdle()
	before := r.member.Status(topics.Pools).Dropped["cap"]
	for _, user := range users {
		r.deliver(schemas.Following, user, 1, pin(1, 100, "user:a"))
	}
	r.WaitIdle()
	expect.Equal(t, r.member.Status(topics.Pools).Dropped["cap"]-before, int64(len(users)), "rows dropped over the cap")
	_, put := r.put(users["a visit"], "pin:001")
	expect.False(t, put, "a full pool accepts a lower pin")
	for name, act := range tests {
		act(users[name])
	}
	r.WaitIdle()
	r.deliver(schemas.Following, users["a restart"], 1, pin(2, 100, "user:a"))
	r.WaitIdle()
	_, put = r.put(users["a restart"], "pin:002")
	expect.False(t, put, "a full pool accepts a lower pin")
	for name := range tests {
		r.deliver(schemas.Following, users[name], 1, pin(2, 100, "user:a"))
	}
	r.WaitIdle()
	r.crash()
	r.deliver(schemas.Following, users["a restart"], 1, pin(2, 100, "user:a"))
	r.WaitIdle()
	for name, user := range users {
		rows, put := r.put(user, "pin:002")
		expect.True(t, put, "after %s, the pool with the rows %v accepts a pin", name, rows)
	}
}

// put reports whether a user has a row of a pin, and returns the names of all rows.
func (r *rig) put(user schemas.UserID, pin schemas.PinID) ([]string, bool) {
	names := convert.All(r.Rows(topics.Pools, string(user)), func(row proctest.Row) string { return fmt.Sprintf("%q", row.Name) })
	return names, slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, string(pin)) })
}
