package fanout

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestRecipients_GroupsFollowersByPartition(t *testing.T) {
	const partitions = 4
	r := newRecipients(partitions)
	rapid.Check(t, func(t *rapid.T) {
		r.reset(20)
		n := rapid.IntRange(0, 40).Draw(t, "followers")
		want := make([]schemas.Delivery, partitions)
		from, first := rapid.IntRange(0, partitions-1).Draw(t, "from"), partitions // distance from from
		for i := range n {
			user := schemas.UserID(fmt.Sprintf("user:%d", rapid.IntRange(0, 1000).Draw(t, "user")))
			weight := rapid.SampledFrom([]float32{1, 1, 1, 2.5}).Draw(t, "weight")
			if got, want := r.add([]byte(user), weight), i < 20; got != want {
				t.Fatalf("follower %d: taken %v, want %v", i, got, want)
			} else if !got {
				break
			}
			p := int(topics.Partition(string(user), partitions))
			first = min(first, (p-from+partitions)%partitions)
			d := &want[p]
			d.Users, d.Weights = append(d.Users, user), append(d.Weights, weight)
			expect.Equal(t, schemas.UserID(r.last), user, "last")
		}
		share := (from + first) % partitions
		if first == partitions {
			share = -1
		}
		expect.Equal(t, r.firstFrom(from), share, "first partition from %d", from)
		expect.Equal(t, r.more, n > 20, "more with %d followers", n)
		for p := range want {
			if even(want[p].Weights) {
				want[p].Weights = nil
			}
			users, weights := r.share(p)
			expect.NoDiff(t, append([]schemas.UserID(nil), users...), want[p].Users, "partition %d", p)
			expect.NoDiff(t, weights, want[p].Weights, "partition %d", p)
		}
	})
}

func even(weights []float32) bool {
	for _, w := range weights {
		if w != 1 {
			return false
		}
	}
	return true
}
