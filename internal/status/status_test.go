package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// Counters, restarts and shares of all processes are added. An unreadable response is listed as unavailable.
func TestAddProcesses_SumsGroups(t *testing.T) {
	t.Parallel()
	running := func(partition int32, stage rows.Stage, applied int64) rows.PartitionStatus {
		p := rows.PartitionStatus{Partition: partition, Stage: stage}
		if applied >= 0 {
			p.Applied = map[string]int64{"pins": applied}
		}
		return p
	}
	says := func(ready bool, starts int64, items int64, partitions ...rows.PartitionStatus) json.RawMessage {
		return must.Get(json.Marshal(Process{
			State: State{Version: "v1", Ready: ready, Missing: []string{}},
			Groups: []Group{NewGroup(rows.Status{
				Group: "objects", Starts: starts, Joined: true, Ready: ready, Partitions: partitions, PerSecond: 1.5,
				Counters: rows.Counters{Records: 3, DeadLetters: 1}, Effects: map[string]int64{"deliveries": 2},
			})},
			Shares: []schemas.FeedShare{{Feed: "home", Source: schemas.Following, Target: 1, Items: items}},
		}))(t)
	}
	s := Status{Process: Process{State: State{Version: "v2", Ready: true, Missing: []string{}}, Groups: []Group{}}}
	s.AddProcesses("self:1", []peers.StatusResult{
		{Address: "a:1", Status: says(true, 3, 10, running(1, rows.StageRunning, 5), running(0, rows.StageStandby, -1))},
		{Address: "b:1", Err: errors.New("connection refused")},
		{Address: "c:1", Status: says(false, 1, 5, running(0, rows.StageRunning, 7), running(1, rows.StageRunning, 9))},
		{Address: "d:1", Status: json.RawMessage(`{"groups":`)},
	}, errors.New("no broker"))
	expect.Equal(t, len(s.Groups), 1, "groups")
	g := s.Groups[0]
	if g.Restarts != 2 || g.Starts != 4 || g.Ready || !g.Joined || g.PerSecond != 3 || g.Counters.Records != 6 || g.Counters.DeadLetters != 2 || g.Effects["deliveries"] != 4 {
		t.Errorf("group %+v, want the sums of both processes", g)
	}
	var at []string
	for _, p := range g.Partitions {
		at = append(at, fmt.Sprint(p.Partition, " ", p.Stage, " ", p.Process))
	}
	want := []string{"0 standby a:1", "0 running c:1", "1 running a:1", "1 running c:1"}
	expect.NoDiff(t, at, want, "partitions")
	if len(s.Shares) != 1 || s.Shares[0].Items != 15 || s.Shares[0].Target != 1 {
		t.Errorf("shares are %+v, want 15 items", s.Shares)
	}
	var addresses, without []string
	for _, p := range s.Processes {
		addresses = append(addresses, p.Address)
	}
	for _, u := range s.Unavailable {
		without = append(without, u.Source)
	}
	expect.NoDiff(t, addresses, []string{"self:1", "a:1", "c:1"}, "processes")
	expect.NoDiff(t, without, []string{"members of the groups", "b:1", "d:1"}, "unavailable")
}

// The lag of a group is that of its reader in each topic. Without an answer of the brokers, no group has a lag.
func TestAddFlows_SetsLagOfGroups(t *testing.T) {
	t.Parallel()
	grouped := func() Status {
		return Status{Process: Process{Groups: []Group{{Status: rows.Status{Group: "objects"}}, {Status: rows.Status{Group: "pools.2"}}}}}
	}
	s := grouped()
	s.AddFlows([]topics.Flow{
		{Topic: "pins", Readers: []topics.Lag{{Group: "objects", Topic: "pins", Records: 3}}},
		{Topic: "served", Readers: []topics.Lag{{Group: "materialize", Topic: "served", Records: 1}, {Group: "pools.2", Topic: "served", Records: 0}}},
		{Topic: "actions", Readers: []topics.Lag{{Group: "objects", Topic: "actions", Records: 4}}},
	}, nil)
	got := []map[string]int64{s.Groups[0].Lag, s.Groups[1].Lag}
	if diff := cmp.Diff([]map[string]int64{{"pins": 3, "actions": 4}, {"served": 0}}, got); diff != "" || len(s.Flows) != 3 || len(s.Unavailable) > 0 {
		t.Errorf("%d flows, unavailable %v, lags (-want +got):\n%s", len(s.Flows), s.Unavailable, diff)
	}
	s = grouped()
	s.AddFlows(nil, kerr.TopicAuthorizationFailed)
	if s.Groups[0].Lag != nil || len(s.Unavailable) != 1 || s.Unavailable[0].Source != "the lag of objects, pools.2" ||
		!strings.Contains(s.Unavailable[0].Reason, "TOPIC_AUTHORIZATION_FAILED") {
		t.Errorf("lag %v, unavailable %q, want the lag of both groups with the reason", s.Groups[0].Lag, s.Unavailable)
	}
}
