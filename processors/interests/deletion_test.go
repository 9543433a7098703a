package interests_test

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Records of a user that arrive after the deletion restore nothing, even if this process has not read users-deleted yet.
func TestMarks_LikeAfterDeletionIsDropped(t *testing.T) {
	t.Parallel()
	w, deleted := proctest.New(t), deletedtest.Of()
	w.Start("a", interests.Group(interests.DefaultConfig(), w.Kafka.Partitions, w.Streams, deleted, decisions{}))
	like := func(user schemas.UserID) {
		proctest.PublishTo(w, w.Streams.InterestMarks, topics.Partition(string(user), w.Kafka.Partitions), "k", time.Time{},
			&schemas.InterestMarks{Likes: []schemas.LikeMark{{User: user, Interest: "interest:tea", Pin: "pin:1", Verb: "save", Weight: 4, Time: 1}}})
		w.WaitIdle()
	}
	like("user:1")
	if rows := w.Rows(topics.Interests, "user:1"); len(rows) != 1 {
		t.Fatalf("rows of a like: %q, want one", rows)
	}
	proctest.Publish(w, w.Streams.UsersDeleted, "user:1", &schemas.DeletedUser{User: "user:1", Time: 7})
	w.WaitIdle()
	like("user:1")
	like("user:2")
	if rows := w.Rows(topics.Interests, "user:1"); len(rows) != 0 {
		t.Errorf("rows of a deleted user: %q", rows)
	}
	if rows := w.Rows(topics.Interests, "user:2"); len(rows) != 1 {
		t.Errorf("rows of another user: %q, want one", rows)
	}
	if at, noted := deleted.Load(schemas.UserID("user:1")); !noted || at != schemas.Micros(7) {
		t.Errorf("deletion noted at %v, want 7", at)
	}
}

// Earlier programs reported deleted pins by likes without an interest: they change no row.
func TestMarks_LikeWithoutInterestIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, interests.DefaultConfig(), nil)
	m := like("", 1)
	m.Likes = append(m.Likes, like("interest:tea", 1).Likes...)
	r.mark(1, m)
	r.WaitIdle()
	if got := r.Rows(topics.Interests, marked); len(got) != 1 {
		t.Errorf("rows %q, want only the interest", got)
	}
}
