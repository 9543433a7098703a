package topics_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// A store lags where its group has committed less than the other group had; keys of other partitions are not affected.
func TestStoreLag_FollowsCommittedOffsets(t *testing.T) {
	w := newWire(t)
	const held = "user:1"
	partition := topics.Partition(held, topics.EmbeddedPartitions)
	commit := func(group string, at int64) {
		t.Helper()
		var offsets kadm.Offsets
		offsets.AddOffset(topics.Edges, partition, at, -1)
		offsets.AddOffset(topics.PinCards, partition, 5, -1)
		must.Get(w.Admin().CommitOffsets(t.Context(), group, offsets))(t)
	}
	lag := topics.NewStoreLag(w.Log(), map[string]string{"primary": "materialize", "standby": "materialize-standby"},
		topics.EmbeddedPartitions, 10*time.Millisecond)
	expect.False(t, lag.Lags("standby", topics.Edges, held), "a store lags before the first check")
	commit("materialize", 7)
	stop := topicstest.Run(t, lag.Run)
	eventually.True(t, "an empty standby lags", func() bool { return lag.Lags("standby", topics.Edges, held) })
	commit("materialize-standby", 6)
	eventually.True(t, "the standby does not lag in cards", func() bool { return !lag.Lags("standby", topics.PinCards, held) })
	expect.True(t, lag.Lags("standby", topics.Edges, "user:other", held), "the standby lags in edges")
	expect.False(t, lag.Lags("primary", topics.Edges, held), "the primary lags in edges")
	other := topicstest.KeysIn("user:", (partition+1)%topics.EmbeddedPartitions, topics.EmbeddedPartitions, 1)[0]
	expect.False(t, lag.Lags("standby", topics.Edges, other), "the standby lags for %s, which is in another partition", other)
	commit("materialize-standby", 8)
	eventually.True(t, "the primary lags", func() bool { return lag.Lags("primary", topics.Edges, held) })
	expect.False(t, lag.Lags("standby", topics.Edges, held), "the standby lags although it has all records")
	commit("materialize", 8)
	eventually.True(t, "no store lags", func() bool { return !lag.Lags("primary", topics.Edges, held) })
	must.OK(t, stop())
}
