package feed

import (
	"context"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// deletedUsers is a complete set of deleted users.
type deletedUsers map[schemas.UserID]bool

func (d deletedUsers) Has(user schemas.UserID) bool { return d[user] }

func (deletedUsers) Ready() <-chan struct{} {
	ready := make(chan struct{})
	close(ready)
	return ready
}

// fakeNeighbors returns the same neighbors for every id.
type fakeNeighbors []schemas.PinID

func (n fakeNeighbors) Neighbors(context.Context, schemas.ID, int) (items []schemas.RelatedItem, err error) {
	for _, pin := range n {
		items = append(items, schemas.RelatedItem{ID: schemas.ID(pin), Facets: item("x").Facets})
	}
	return items, nil
}

// fullRig returns a rig in which every method has something to return for the viewer.
func fullRig(t *testing.T, deleted DeletedUsers) *rig {
	r := newRig(t, nil)
	r.deps.Deleted = deleted
	r.deps.Pools, r.deps.Neighbors = fakePools{"pin:1"}, fakeNeighbors{"pin:2"}
	r.deps.Explainer = &fakeExplainer{answer: schemas.Why{Fate: schemas.FateNext, Place: 1}}
	r.gen.chunk.Served.Items, r.gen.chunk.Head = []schemas.ServedItem{item("new")}, 3
	r.store.materialize(entriesDown(3, 1)...)
	r.store.follow("user:friend", true)
	r.store.lists[schemas.Followee(viewer)] = []schemas.PinVersion{{Pin: "pin:own", PinContent: schemas.PinContent{Facets: schemas.Facets{Author: viewer}}}}
	return r
}

// The store does not have the deletion yet, and the pools still contain everything.
func TestService_AnswersDeletedUserUniformly(t *testing.T) {
	r := fullRig(t, deletedUsers{viewer: true})
	ctx := t.Context()
	empty := Page{}.full()
	visit, err := r.Visit(ctx, viewer, "home", 10)
	checkAnswer(t, "visit", visit, empty, err)
	older, err := r.Older(ctx, viewer, r.cursors.sealFeed(feedCursor{user: viewer, feed: "home", below: 4}), 10)
	checkAnswer(t, "older", older, empty, err)
	count, err := r.Waiting(ctx, viewer)
	checkAnswer(t, "new items", count, 0, err)
	why, err := r.Why(ctx, viewer, "home", "pin:1", false)
	checkAnswer(t, "why", why, &schemas.Why{
		User: viewer, Pin: "pin:1", Feed: "home", Fate: schemas.FateOut, Reason: schemas.ReasonUserDeleted,
	}, err)
	for _, source := range []schemas.Source{schemas.Following, schemas.Related} {
		pool, err := r.Pool(ctx, viewer, source, 10)
		checkAnswer(t, "pool", pool, &schemas.Pool{Source: source}, err)
	}
	state, err := r.FeedState(ctx, viewer, "home")
	checkAnswer(t, "state", state, &schemas.FeedState{Feed: "home"}, err)
	list, err := r.List(ctx, schemas.Followee(viewer), "", "", 10)
	checkAnswer(t, "list", list, ListPage{Items: []Pin{}, Degraded: []string{}}, err)
	expect.Empty(t, r.gen.asked, "calls of the generator")
	expect.Equal(t, r.store.reads, 0, "calls of the store")
}

// The process reads the deletion before the store has it.
func TestService_HidesPinsOfDeletedAuthors(t *testing.T) {
	r := fullRig(t, deletedUsers{"user:friend": true})
	r.store.lists["board:1"] = []schemas.PinVersion{{Pin: "pin:1", PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:friend", Board: "board:1"}}}}
	visit, err := r.Visit(t.Context(), viewer, "home", 10)
	checkAnswer(t, "visit", names(visit.Items), "", err)
	list, err := r.List(t.Context(), "board:1", "", "", 10)
	checkAnswer(t, "list", len(list.Items), 0, err)
	related, err := r.RelatedPins(t.Context(), "pin:1", "", 10)
	checkAnswer(t, "related", len(related.Items), 0, err)
	other := fullRig(t, deletedUsers{"user:other": true})
	visit, err = other.Visit(t.Context(), viewer, "home", 10)
	checkAnswer(t, "visit, another user deleted", names(visit.Items), "*new f3 f2 f1", err)
}

func checkAnswer(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	expect.Error(t, err, "", "%s", what)
	same(t, what, got, want)
}
