package materialize_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/materialize"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

const erasedUser = schemas.UserID("user:erased")

// publishRowsOfErasedUser publishes one record of every topic that creates a row of the erased user or an edge to that
// user.
func publishRowsOfErasedUser(t *testing.T, w *wire, at schemas.Micros) {
	t.Helper()
	key := string(erasedUser)
	produce(t, w, w.Streams.FeedEntries, key, schemas.FeedEntries{User: erasedUser, Time: at, First: 1, Items: []schemas.ServedItem{{Pin: "pin:1", Created: 5}}})
	produce(t, w, w.Streams.Edges, key, schemas.Edge{User: erasedUser, Other: "board:3", Kind: schemas.FollowEdge, Live: true, Time: at})
	produce(t, w, w.Streams.Edges, "user:fan", schemas.Edge{User: "user:fan", Other: schemas.ID(key), Kind: schemas.FollowEdge, Live: true, Time: at})
	produce(t, w, w.Streams.Publications, key, schemas.Publication{Followee: schemas.Followee(erasedUser), PinVersion: version(erasedUser)})
}

// The record of the deletion itself marks the user as deleted. In this test, the global table of deleted users has read no
// record.
func TestErase_LateRecordsOfErasedUserAreNotWritten(t *testing.T) {
	t.Parallel()
	w, store := newWire(t), openStore(t)
	produce(t, w, w.Streams.UsersDeleted, string(erasedUser), schemas.DeletedUser{User: erasedUser, Time: 3})
	stop := w.fill(t, "materialize", w.sink(t, materialize.DefaultConfig(), store))
	publishRowsOfErasedUser(t, w, 9)
	w.await(t, "materialize")
	must.OK(t, stop())

	ctx := t.Context()
	entries, _, err := store.Page(ctx, erasedUser, math.MaxInt64, 10)
	same(t, "entries", len(entries), 0, err)
	edges, err := store.Edges(ctx, erasedUser, []schemas.ID{"board:3"})
	same(t, "edges", len(edges), 0, err)
	edges, err = store.Edges(ctx, "user:fan", []schemas.ID{schemas.ID(erasedUser)})
	same(t, "edges of others", len(edges), 0, err)
	list, _, err := store.List(ctx, schemas.Followee(erasedUser), "", 10)
	same(t, "list", len(list), 0, err)
}

// timedStore keeps entries like a store with write timestamps: an erasure deletes the entries that are not later than
// itself.
type timedStore struct {
	*feedstore.Store
	mu      sync.Mutex
	entries map[schemas.UserID]schemas.Micros // latest write time of the remaining entries
}

func (s *timedStore) Write(ctx context.Context, b materialize.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Entries {
		s.entries[e.User] = max(s.entries[e.User], e.Time)
	}
	for _, d := range b.Erased {
		if s.entries[d.User] <= d.Time {
			delete(s.entries, d.User)
		}
	}
	return s.Store.Write(ctx, b)
}

// The deletion has the time of its event, and an entry may be minutes ahead of that. Therefore the time of the erasure is
// the latest time that an entry can have when the record of the deletion arrives.
func TestErase_RemovesEntryAheadOfDeletion(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	store := &timedStore{Store: openStore(t), entries: map[schemas.UserID]schemas.Micros{}}
	now := time.Now()
	publishRowsOfErasedUser(t, w, schemas.MicrosOf(now.Add(4*time.Minute)))
	stop := w.fill(t, "materialize", w.sink(t, materialize.DefaultConfig(), store))
	produce(t, w, w.Streams.UsersDeleted, string(erasedUser), schemas.DeletedUser{User: erasedUser, Time: schemas.MicrosOf(now)})
	w.await(t, "materialize")
	must.OK(t, stop())
	if at, left := store.entries[erasedUser]; left {
		t.Errorf("the entry of %s remains, deleted at %s", at.Time(), now)
	}
}
