package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/status"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// If the broker does not respond, the status omits data from the broker.
func TestStatus_OmitsDataOfUnavailableBroker(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.publish(event(time.Now(), "p", "pins", "user:a", "create", "pin:1", nil))
	complete := s.status(t.Context()).(status.Status)
	if len(complete.Unavailable) != 0 || len(complete.Flows) == 0 || len(complete.Shares) == 0 || complete.Groups[0].Lag == nil {
		t.Fatalf("%d flows, %d shares, lag %v: want all of them", len(complete.Flows), len(complete.Shares), complete.Groups[0].Lag)
	}
	expect.NoDiff(t, complete.Stores, []status.Store{{Name: "features", Kind: "embedded"}, {Name: "primary", Kind: "embedded"}}, "stores")
	groups := s.groups
	s.groups = nil
	expect.True(t, s.status(t.Context()).(status.Status).Groups != nil, "without groups, the list is empty, not null")
	s.groups = groups
	away := must.Get(topics.NewLog(topics.Kafka{Brokers: []string{testchild.FreeAddress(t)}, Partitions: s.kafka.Partitions}))(t)
	defer away.Close()
	there := s.ends
	s.ends = away
	defer func() { s.ends = there }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	part := s.status(ctx).(status.Status)
	expect.Error(t, ctx.Err(), "", "the status does not wait for the broker until the caller's timeout")
	if len(part.Flows) != 0 || part.Groups[0].Lag != nil || len(part.Groups) != len(complete.Groups) || len(part.Components) != len(complete.Components) {
		t.Errorf("%d flows, lag %v, %d groups, %d components: want only groups and components", len(part.Flows), part.Groups[0].Lag, len(part.Groups), len(part.Components))
	}
	if len(part.Unavailable) != 1 || !strings.HasPrefix(part.Unavailable[0].Source, "the lag of objects, ") {
		t.Errorf("got missing %q, want one entry for the lag of all groups", part.Unavailable)
	}
}
