package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// If the broker does not respond, the status omits what only the broker knows.
func TestStatus_OmitsWhatOnlyBrokerKnows(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.publish(event(time.Now(), "p", "pins", "user:a", "create", "pin:1", nil))
	whole := s.status(t.Context()).(status.Status)
	if len(whole.Unavailable) != 0 || len(whole.Flows) == 0 || len(whole.Shares) == 0 || whole.Groups[0].Lag == nil {
		t.Fatalf("%d flows, %d shares, lag %v: want all there is", len(whole.Flows), len(whole.Shares), whole.Groups[0].Lag)
	}
	if diff := cmp.Diff([]status.Store{{Name: "features", Kind: "embedded"}, {Name: "primary", Kind: "embedded"}}, whole.Stores); diff != "" {
		t.Errorf("stores (-want +got):\n%s", diff)
	}
	groups := s.groups
	s.groups = nil
	if got := s.status(t.Context()).(status.Status); got.Groups == nil {
		t.Error("without groups: got null, want an empty list")
	}
	s.groups = groups
	away, err := topics.NewLog(topics.Kafka{Brokers: []string{freeAddress(t)}, Partitions: s.kafka.Partitions})
	must.OK(t, err)
	defer away.Close()
	there := s.ends
	s.ends = away
	defer func() { s.ends = there }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	part := s.status(ctx).(status.Status)
	if ctx.Err() != nil {
		t.Error("the status waited for the broker until its caller gave up")
	}
	if len(part.Flows) != 0 || part.Groups[0].Lag != nil || len(part.Groups) != len(whole.Groups) || len(part.Components) != len(whole.Components) {
		t.Errorf("%d flows, lag %v, %d groups, %d components: want groups and components alone", len(part.Flows), part.Groups[0].Lag, len(part.Groups), len(part.Components))
	}
	if len(part.Unavailable) != 1 || !strings.HasPrefix(part.Unavailable[0].Source, "the lag of objects, ") {
		t.Errorf("without %q, want the lag of all that have applied something, once", part.Unavailable)
	}
}
