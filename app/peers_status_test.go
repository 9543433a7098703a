package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// whole reports whether a status has every partition of every group exactly once, and returns the processes with the
// pools.
func (s status) whole(partitions int32) (processes []string, whole bool) {
	for _, name := range topics.RowGroups() {
		at := slices.IndexFunc(s.Groups, func(g groupStatus) bool { return g.Group == name })
		if at < 0 || !s.Groups[at].Ready || len(s.Groups[at].Partitions) != int(partitions) {
			return nil, false
		}
		for i, p := range s.Groups[at].Partitions {
			if p.Partition != int32(i) {
				return nil, false
			}
			if name == topics.Pools && !slices.Contains(processes, p.Process) {
				processes = append(processes, p.Process)
			}
		}
	}
	slices.Sort(processes)
	return processes, true
}

// A serving process reports the status of all processes: groups are complete, numbers are added up, and a process that
// hangs is named without delaying the response.
func TestStatusOfAllProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process: not with -short")
	}
	t.Parallel()
	broker := startBroker(t)
	first := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	second := startProcess(t, broker)
	front := startPieces(t, roleConfig(t, broker), serving())
	own, one, two := front.cfg.HTTP, first.cfg.HTTP, strings.TrimPrefix(second.http, "http://")
	ask := func() status { return get[status](front.door(), "/v1/status") }
	eventually.True(t, "the groups are whole, in two processes", func() bool {
		processes, whole := ask().whole(front.cfg.partitions())
		return whole && slices.Equal(processes, slices.Sorted(slices.Values([]string{one, two})))
	})
	now := time.Now()
	var events []map[string]any
	for i := range 40 {
		event := map[string]any{"id": fmt.Sprint("s", i), "time": now.UnixMicro(), "actor": "user:author"}
		event["stream"], event["verb"], event["object"] = "pins", "create", fmt.Sprint("pin:s", i)
		if i < 20 {
			event["stream"], event["verb"], event["actor"], event["object"] = "follows", "follow", fmt.Sprint("user:s", i), "user:author"
		}
		events = append(events, event)
	}
	front.publish(events...)
	for i := range 20 {
		if n := len(get[pinList](front.door(), fmt.Sprintf("/v1/users/user:s%d/feed?limit=20", i)).Items); n != 20 {
			t.Fatalf("a visit brings %d pins, want 20", n)
		}
	}
	s := ask()
	if len(s.Unasked) != 0 || len(s.Processes) != 3 || s.Processes[0].Address != own {
		t.Fatalf("processes %+v, unasked %+v: want all three, this one first", s.Processes, s.Unasked)
	}
	for _, p := range s.Processes {
		if !p.Ready || p.Version != version || len(p.Parts) < 5 {
			t.Errorf("a process is %+v, want that it is ready, with its parts", p)
		}
	}
	mine := first.status(t.Context()).(status)
	items := func(s status) (n int64) {
		for _, share := range s.Shares {
			n += share.Items
		}
		return n
	}
	if all, some := items(s), items(mine); all != 400 || some == 0 || some >= all {
		t.Errorf("%d items were chosen, %d of them in one of two processes: want 400, and some", all, some)
	}
	objects := func(s status) groupStatus {
		return s.Groups[slices.IndexFunc(s.Groups, func(g groupStatus) bool { return g.Group == topics.Objects })]
	}
	if all, some := objects(s), objects(mine); all.Counters.Records <= some.Counters.Records || all.Starts != 2 || all.Lag[topics.Pins] != 0 || len(all.Lag) == 0 {
		t.Errorf("objects in all: %+v, lag %v; in one: %+v", all.Counters, all.Lag, some.Counters)
	}

	if err := second.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var took time.Duration
	eventually.True(t, "the one that hangs is named", func() bool { // a signal takes a moment
		began := time.Now()
		s = ask()
		took = time.Since(began)
		return len(s.Unasked) == 1 && s.Unasked[0].What == two
	})
	if took > brokerPatience+3*time.Second || len(s.Processes) != 2 || !s.Ready {
		t.Errorf("after %s there are %d processes, ready %v: want two in two seconds, and that this one is ready", took, len(s.Processes), s.Ready)
	}
	if len(objects(s).Partitions) == 0 {
		t.Error("the groups of the process that answers are not told")
	}
	asker := newAsker(client.Config{Address: own})
	said := doctor.Run(t.Context(), time.Minute, doctor.Process(&http.Client{Transport: asker}, asker.url, version))[0].Findings
	if !slices.ContainsFunc(said, func(f doctor.Finding) bool {
		return f.Level == doctor.Warning && strings.Contains(f.Message, "the state of "+two+": ")
	}) {
		t.Errorf("the doctor says %v: want that %s does not answer", said, two)
	}
}

// With authentication enabled, a process returns its state only to processes that authenticate as peers.
func TestAProcessTellsPeersOfItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens, secret string
		tells          bool
	}{{"", "", true}, {"", "peers.secret", true}, {"token.secret", "", false}, {"token.secret", "peers.secret", true}} {
		p := &App{}
		p.cfg.Auth.SecretFile, p.cfg.Peers.SecretFile = c.tokens, c.secret
		if got := p.peer() != nil; got != c.tells {
			t.Errorf("tokens by %q and peers by %q: it tells: %t, want %t", c.tokens, c.secret, got, c.tells)
		}
	}
}

// heard is a fixed list of responses from other processes.
type heard struct {
	all []peers.StatusResult
	err error
}

func (h heard) Processes(context.Context, string) ([]peers.StatusResult, error) { return h.all, h.err }

// Statuses are added up: counters, restarts, shares. An unreadable response does not count.
func TestGroupsOfProcessesAreAddedUp(t *testing.T) {
	t.Parallel()
	running := func(partition int32, stage rows.Stage, applied int64) rows.PartitionStatus {
		p := rows.PartitionStatus{Partition: partition, Stage: stage}
		if applied >= 0 {
			p.Applied = map[string]int64{"pins": applied}
		}
		return p
	}
	says := func(ready bool, starts int64, items int64, partitions ...rows.PartitionStatus) json.RawMessage {
		text, err := json.Marshal(processState{
			Version: "v1", Ready: ready, Missing: []string{},
			Groups: []groupStatus{groupOf(rows.Status{
				Group: "objects", Starts: starts, Joined: true, Ready: ready, Partitions: partitions, PerSecond: 1.5,
				Counters: rows.Counters{Records: 3, DeadLetters: 1}, Effects: map[string]int64{"deliveries": 2},
			})},
			Shares: []schemas.FeedShare{{Feed: "home", Source: schemas.Following, Target: 1, Items: items}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := status{processState: processState{Version: "v2", Ready: true, Missing: []string{}, Groups: []groupStatus{}}}
	s.addOthers(t.Context(), heard{err: errors.New("no broker"), all: []peers.StatusResult{
		{Address: "a:1", Status: says(true, 3, 10, running(1, rows.StageRunning, 5), running(0, rows.StageStandby, -1))},
		{Address: "b:1", Err: errors.New("it is gone")},
		{Address: "c:1", Status: says(false, 1, 5, running(0, rows.StageRunning, 7), running(1, rows.StageRunning, 9))},
		{Address: "d:1", Status: json.RawMessage(`{"groups":`)},
	}}, "self:1")
	if len(s.Groups) != 1 {
		t.Fatalf("%d groups, want one", len(s.Groups))
	}
	g := s.Groups[0]
	if g.Restarts != 2 || g.Starts != 4 || g.Ready || !g.Joined || g.PerSecond != 3 || g.Counters.Records != 6 || g.Counters.DeadLetters != 2 || g.Effects["deliveries"] != 4 {
		t.Errorf("the group is %+v: want what both did", g)
	}
	var at []string
	for _, p := range g.Partitions {
		at = append(at, fmt.Sprint(p.Partition, " ", p.Stage, " ", p.Process))
	}
	want := []string{"0 standby a:1", "0 running c:1", "1 running a:1", "1 running c:1"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
	ends := topics.Offsets{"pins": {0: 10, 1: 12}}
	if diff := cmp.Diff(map[string]int64{"pins": 2 + 2}, lagOf(g.Partitions, ends)); diff != "" {
		t.Errorf("lag (-want +got):\n%s", diff)
	}
	if len(s.Shares) != 1 || s.Shares[0].Items != 15 || s.Shares[0].Target != 1 {
		t.Errorf("shares are %+v, want 15 items", s.Shares)
	}
	var addresses, without []string
	for _, p := range s.Processes {
		addresses = append(addresses, p.Address)
	}
	for _, u := range s.Unasked {
		without = append(without, u.What)
	}
	if !slices.Equal(addresses, []string{"self:1", "a:1", "c:1"}) || !slices.Equal(without, []string{"members of the groups", "b:1", "d:1"}) {
		t.Errorf("processes %q, without %q", addresses, without)
	}
}
