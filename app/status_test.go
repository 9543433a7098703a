package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/status"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/serving/client"
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

// isComplete reports whether a status has every partition of every group exactly once. It returns the processes with
// partitions of the pools.
func isComplete(s status.Status, partitions int32) (processes []string, complete bool) {
	for _, name := range topics.RowGroups() {
		at := slices.IndexFunc(s.Groups, func(g status.Group) bool { return g.Group == name })
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

// A serving process reports the status of all processes: it merges the groups, sums counters, and reports a process that
// hangs without a delay of the response.
func TestStatus_CoversAllProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process: not with -short")
	}
	t.Parallel()
	broker := startBroker(t)
	first := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	second := startProcess(t, broker)
	front := startPieces(t, roleConfig(t, broker), serving())
	own, one, two := front.cfg.HTTP, first.cfg.HTTP, strings.TrimPrefix(second.http, "http://")
	ask := func() status.Status { return get[status.Status](front.api(), "/v1/status") }
	eventually.True(t, "the groups are complete, in two processes", func() bool {
		processes, all := isComplete(ask(), front.cfg.partitions())
		return all && slices.Equal(processes, slices.Sorted(slices.Values([]string{one, two})))
	})
	var history story
	for i := range 20 {
		history.addAt(time.Now(), "follows", fmt.Sprint("user:s", i), "follow", "user:author", nil)
		history.addAt(time.Now(), "pins", "user:author", "create", fmt.Sprint("pin:s", i), nil)
	}
	front.publish(history.events...)
	for i := range 20 {
		items := get[pinList](front.api(), fmt.Sprintf("/v1/users/user:s%d/feed?limit=20", i)).Items
		expect.Equal(t, len(items), 20, "new pins of the visit")
	}
	mine := first.status(t.Context()).(status.Status) // before that of all: the counters grow
	s := ask()
	if len(s.Unavailable) != 0 || len(s.Processes) != 3 || s.Processes[0].Address != own {
		t.Fatalf("processes %+v, missing %+v: want all three, this one first", s.Processes, s.Unavailable)
	}
	for _, p := range s.Processes {
		if !p.Ready || p.Version != version || len(p.Components) < 5 {
			t.Errorf("got process %+v, want it ready, with its components", p)
		}
	}
	items := func(s status.Status) (n int64) {
		for _, share := range s.Shares {
			n += share.Items
		}
		return n
	}
	if all, some := items(s), items(mine); all != 400 || some == 0 || some >= all {
		t.Errorf("got %d chosen items, %d of them in one of two processes: want 400, and some", all, some)
	}
	objects := func(s status.Status) status.Group {
		return s.Groups[slices.IndexFunc(s.Groups, func(g status.Group) bool { return g.Group == topics.Objects })]
	}
	if all, some := objects(s), objects(mine); all.Counters.Records <= some.Counters.Records || all.Starts != 2 || all.Lag[topics.Pins] != 0 || len(all.Lag) == 0 {
		t.Errorf("objects in all processes: %+v, lag %v; in one: %+v", all.Counters, all.Lag, some.Counters)
	}

	must.OK(t, second.cmd.Process.Signal(syscall.SIGSTOP))
	var took time.Duration
	eventually.True(t, "the status reports the process that hangs", func() bool { // the signal takes effect asynchronously
		began := time.Now()
		s = ask()
		took = time.Since(began)
		return len(s.Unavailable) == 1 && s.Unavailable[0].Source == two
	})
	if took > statusTimeout+3*time.Second || len(s.Processes) != 2 || !s.Ready {
		t.Errorf("after %s: %d processes, ready %v: want two within two seconds, and this one ready", took, len(s.Processes), s.Ready)
	}
	expect.AtLeast(t, len(objects(s).Partitions), 1, "partitions of the responding process in the status")
	asker, url, err := new(Config).localClient(client.Config{Address: own})
	must.OK(t, err)
	said := doctor.Run(t.Context(), time.Minute, doctor.Process(asker, url, version))[0].Findings
	if !slices.ContainsFunc(said, func(f doctor.Finding) bool {
		return f.Level == doctor.Warning && strings.Contains(f.Message, "the state of "+two+": ")
	}) {
		t.Errorf("got findings %v: want a warning that %s does not respond", said, two)
	}
}

// With authentication, a process returns its state only to authenticated peers.
func TestPeerHandler_RequiresPeerAuthentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens, secret string
		returned       bool
	}{{"", "", true}, {"", "peers.secret", true}, {"token.secret", "", false}, {"token.secret", "peers.secret", true}} {
		p := &App{}
		p.cfg.Auth.SecretFile, p.cfg.Peers.SecretFile = c.tokens, c.secret
		expect.Equal(t, p.peer() != nil, c.returned, "tokens by %q and peers by %q: state returned", c.tokens, c.secret)
	}
}
