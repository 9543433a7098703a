package product

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/topics"
)

// What only the broker knows is left out when it does not answer, and the rest is told all the same.
func TestStatusWithoutTheBroker(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	whole := s.status(t.Context()).(status)
	if len(whole.Flows) == 0 || len(whole.Shares) == 0 || whole.Groups[0].Lag == nil {
		t.Fatalf("%d flows, %d shares, lag %v: want all there is", len(whole.Flows), len(whole.Shares), whole.Groups[0].Lag)
	}
	if diff := cmp.Diff([]storeStatus{{Name: "features", Kind: "embedded"}, {Name: "primary", Kind: "embedded"}}, whole.Stores); diff != "" {
		t.Errorf("stores (-want +got):\n%s", diff)
	}
	away, err := topics.NewLog(topics.Kafka{Brokers: []string{freeAddress(t)}, Partitions: s.kafka.Partitions})
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	there := s.ends
	s.ends = away
	defer func() { s.ends = there }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	part := s.status(ctx).(status)
	if ctx.Err() != nil {
		t.Error("the status waited for the broker until its caller gave up")
	}
	if len(part.Flows) != 0 || part.Groups[0].Lag != nil || len(part.Groups) != len(whole.Groups) || len(part.Parts) != len(whole.Parts) {
		t.Errorf("%d flows, lag %v, %d groups, %d parts: want groups and parts alone", len(part.Flows), part.Groups[0].Lag, len(part.Groups), len(part.Parts))
	}
}

// A process without groups has a list of none.
func TestStatusOfNoGroups(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	groups := s.groups
	s.groups = nil
	defer func() { s.groups = groups }()
	if got := s.status(t.Context()).(status); got.Groups == nil {
		t.Error("groups are null, want an empty list")
	}
}
