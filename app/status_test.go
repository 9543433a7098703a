package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// If the broker does not respond, the status omits what only the broker knows.
func TestStatusWithoutTheBroker(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.publish(map[string]any{"stream": "pins", "id": "p", "time": time.Now().UnixMicro(), "actor": "user:a", "verb": "create", "object": "pin:1"})
	whole := s.status(t.Context()).(status)
	if len(whole.Unasked) != 0 || len(whole.Flows) == 0 || len(whole.Shares) == 0 || whole.Groups[0].Lag == nil {
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
	if len(part.Unasked) != 1 || !strings.HasPrefix(part.Unasked[0].What, "the lag of objects, ") {
		t.Errorf("without %q, want the lag of all that have applied something, once", part.Unasked)
	}
}

// refusing is brokers on which one topic may not be described: a request with it and other topics fails as a whole.
type refusing struct{ topic string }

func (r refusing) Ends(_ context.Context, names ...string) (topics.Offsets, error) {
	ends := topics.Offsets{}
	for _, name := range names {
		if name == r.topic {
			return nil, fmt.Errorf("list ends: %w", kerr.TopicAuthorizationFailed)
		}
		ends[name] = map[int32]int64{0: 10}
	}
	return ends, nil
}

// A group with an input that may not be described has no lag and is named. The others have theirs.
func TestLagThatMayNotBeAskedFor(t *testing.T) {
	t.Parallel()
	applied := func(group string, inputs ...string) groupStatus {
		part := rows.PartitionStatus{Applied: map[string]int64{}}
		for _, topic := range inputs {
			part.Applied[topic] = 6
		}
		return groupOf(rows.Status{Group: group, Partitions: []rows.PartitionStatus{part}})
	}
	s := status{processState: processState{Groups: []groupStatus{
		applied("objects", topics.Pins), applied("pools.2", topics.Served, topics.TicksOf("pools.2")), applied("actors", topics.Users, topics.ActionsJoined), applied("related"),
	}}}
	s.addLag(t.Context(), refusing{topics.TicksOf("pools.2")})
	var lags []map[string]int64
	for _, g := range s.Groups {
		lags = append(lags, g.Lag)
	}
	if diff := cmp.Diff([]map[string]int64{{"pins": 3}, nil, {"users": 3, "actions-joined": 3}, {}}, lags); diff != "" {
		t.Errorf("lags (-want +got):\n%s", diff)
	}
	if len(s.Unasked) != 1 || s.Unasked[0].What != "the lag of pools.2" || !strings.Contains(s.Unasked[0].Why, "TOPIC_AUTHORIZATION_FAILED") {
		t.Errorf("without %q, want the lag of pools.2, and why", s.Unasked)
	}
}

// The status of a process without groups has an empty list.
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
