package conformance

import (
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func testEdges(t *testing.T, open opener) {
	s := open(t, 100)
	at := func(k schemas.EdgeKind, live bool, time schemas.Micros) schemas.Edge {
		return schemas.Edge{Kind: k, Live: live, Time: time}
	}
	for _, c := range []struct {
		name string
		a, b schemas.Edge
		want schemas.Edge
	}{
		{"later unfollow", at(schemas.FollowEdge, true, 1), at(schemas.FollowEdge, false, 2), at(schemas.FollowEdge, false, 2)},
		{"later follow", at(schemas.FollowEdge, false, 1), at(schemas.FollowEdge, true, 2), at(schemas.FollowEdge, true, 2)},
		{"unfollow wins a tie", at(schemas.FollowEdge, true, 5), at(schemas.FollowEdge, false, 5), at(schemas.FollowEdge, false, 5)},
		{"block wins a tie", at(schemas.BlockEdge, true, 5), at(schemas.BlockEdge, false, 5), at(schemas.BlockEdge, true, 5)},
		{"blocked wins a tie", at(schemas.BlockedEdge, true, 5), at(schemas.BlockedEdge, false, 5), at(schemas.BlockedEdge, true, 5)},
		{"unblock later", at(schemas.BlockEdge, true, 5), at(schemas.BlockEdge, false, 6), at(schemas.BlockEdge, false, 6)},
		{"before 1970", at(schemas.FollowEdge, true, -5), at(schemas.FollowEdge, false, -6), at(schemas.FollowEdge, true, -5)},
	} {
		for _, order := range [][]schemas.Edge{{c.a, c.b}, {c.b, c.a}} {
			user, other := newUser(), schemas.ID("user:"+fresh())
			for _, e := range order {
				e.User, e.Other = user, other
				write(t, s, feedstore.Batch{Edges: []schemas.Edge{e}})
			}
			want := c.want
			want.User, want.Other = user, other
			got := must.Get(s.Edges(t.Context(), user, []schemas.ID{other, "user:none", other}))(t)
			same(t, c.name, got, []schemas.Edge{want})
		}
	}
}

// testBeginningOfTime writes records at the minimum time, which a store may or may not distinguish from the next one.
func testBeginningOfTime(t *testing.T, open opener) {
	s, user, other := open(t, 100), newUser(), schemas.ID("user:"+fresh())
	write(t, s, feedstore.Batch{
		Edges:   []schemas.Edge{{Kind: schemas.FollowEdge, Live: true, User: user, Other: other, Time: math.MinInt64}},
		Deleted: []schemas.DeletedUser{{User: user, Time: math.MinInt64}},
	})
	edges, err := s.Edges(t.Context(), user, []schemas.ID{other})
	if err != nil || len(edges) != 1 || !edges[0].Live || edges[0].Time > math.MinInt64+1 {
		t.Errorf("edges %+v, %v, want the one at the minimum time", edges, err)
	}
	expect.True(t, must.Get(s.DeletedUsers(t.Context(), []schemas.UserID{user}))(t)[user], "%s is deleted", user)
	erased := schemas.Edge{Kind: schemas.FollowEdge, User: user, Other: other, Time: math.MinInt64, Erased: true}
	write(t, s, feedstore.Batch{Edges: []schemas.Edge{erased}})
	edges = must.Get(s.Edges(t.Context(), user, []schemas.ID{other}))(t)
	expect.Equal(t, len(edges), 0, "edges after their erasure")
}
