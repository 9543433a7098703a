package app

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/logtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rows"
)

func TestReadiness_ReportsProgressOfGroup(t *testing.T) {
	part := func(stage rows.Stage, table, end int64) rows.PartitionStatus {
		return rows.PartitionStatus{Stage: stage, Table: table, End: end}
	}
	for _, test := range []struct {
		name   string
		status rows.Status
		want   string
	}{
		{"joining", rows.Status{Group: "pools"}, "pools has no partitions yet: it is joining its consumer group"},
		{"nothing read", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, -1, 50)}}, "1 of 1 partitions are recovering, 0 % of their rows are read"},
		{"unknown end", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, -1, 0)}}, "1 of 1 partitions are recovering, 0 % of their rows are read"},
		{"running partitions do not count", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{
			part(rows.StageRecovering, 9, 50), part(rows.StageRecovering, 49, 50), part(rows.StageRunning, 1000, 0), part(rows.StageStandby, 5, 10),
		}}, "2 of 4 partitions are recovering, 60 % of their rows are read"},
		{"past its end", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, 99, 50)}}, "1 of 1 partitions are recovering, 100 % of their rows are read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := groupNotReady(test.status); !strings.HasSuffix(got, test.want) || !strings.HasPrefix(got, "pools ") {
				t.Errorf("got %q, want pools and %q", got, test.want)
			}
		})
	}
}

// Before Run, every component is not ready, and the global tables are unread.
func TestReadiness_NamesEveryPartBeforeRun(t *testing.T) {
	p := must.Get(openApp(t.Context(), testConfig(t.TempDir()), slog.New(slog.DiscardHandler), everything()))(t)
	defer func() { must.OK(t, p.Close()) }()
	got := p.missing()
	for _, want := range []string{
		"http is idle", "materialize is idle", "objects has no partitions yet: it is joining its consumer group",
		"pools has no partitions yet: it is joining its consumer group", "users-deleted is still being read",
		"recents-pulled is still being read", "hot-pins is still being read", "popular-pins is still being read",
	} {
		expect.True(t, slices.Contains(got, want), "%q is among %q", want, got)
	}
}

// A serving process starts without its external stores, reports which are missing, and serves degraded feeds and features
// with the reasons.
func TestServe_StartsWithoutStores(t *testing.T) {
	broker := startBroker(t)
	cfg := roleConfig(t, broker)
	unreachable := []string{"127.0.0.1:1"}
	cfg.FeedStore.Cassandra.Primary.Hosts = unreachable
	cfg.Pinot.Brokers, cfg.Pinot.Controller = unreachable, unreachable[0]
	log := new(logtest.Log)
	s := launch(t, cfg, slog.New(slog.NewTextHandler(log, nil)), serving())
	for _, c := range []struct{ path, body, want string }{
		{"/readyz", "", "no feed store is reachable"},
		{"/v1/users/user:ada/feed", "", `"degraded":["generator","store"]`},
		{"/v1/features", `{"features":["interests_24h"],"users":["user:ada"]}`, `"missing":[{"entity":"user:ada","feature":"interests_24h"`},
	} {
		eventually.True(t, c.path+" answers "+c.want, func() bool {
			_, body := s.api().send(c.path, c.body)
			return strings.Contains(body, c.want)
		})
	}
	eventually.True(t, "the log reports the unavailable feed store", func() bool { return log.Contains("feed store cannot be reached") })
}
