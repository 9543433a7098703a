package app

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rows"
)

func TestReadiness_ReportsProgressOfGroup(t *testing.T) {
	part := func(stage rows.Stage, table, end int64) rows.PartitionStatus {
		return rows.PartitionStatus{Stage: stage, Table: table, End: end}
	}
	for _, test := range []struct {
		name    string
		status  rows.Status
		state   string
		percent int // -1: none
	}{
		{"joining", rows.Status{Group: "pools"}, "joining", -1},
		{"nothing read", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, -1, 50)}}, "recovering", 0},
		{"unknown end", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, -1, 0)}}, "recovering", 0},
		{"running partitions do not count", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{
			part(rows.StageRecovering, 9, 50), part(rows.StageRecovering, 49, 50), part(rows.StageRunning, 1000, 0), part(rows.StageStandby, 5, 10),
		}}, "recovering", 60},
		{"past its end", rows.Status{Group: "pools", Joined: true, Partitions: []rows.PartitionStatus{part(rows.StageRecovering, 99, 50)}}, "recovering", 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := groupNotReady(test.status)
			percent := -1
			if got.Percent != nil {
				percent = *got.Percent
			}
			if got.Component != "pools" || got.State != test.state || percent != test.percent || got.Text == "" {
				t.Errorf("got %+v with %d %%, want %s with %d %%", got, percent, test.state, test.percent)
			}
		})
	}
}

// Before Run, every component is not ready, and the global tables are unread.
func TestReadiness_NamesEveryPartBeforeRun(t *testing.T) {
	p, err := openApp(t.Context(), testConfig(t.TempDir()), slog.New(slog.DiscardHandler), everything())
	must.OK(t, err)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := map[string][]string{}
	for _, l := range p.notReadyReasons() {
		got[l.Component] = append(got[l.Component], l.State)
	}
	for part, state := range map[string]string{
		"http": "idle", "materialize": "idle", "objects": "joining", "pools": "joining", "users-deleted": "reading", "recents-pulled": "reading", "hot-pins": "reading", "popular-pins": "reading",
	} {
		if !slices.Contains(got[part], state) {
			t.Errorf("%s: got states %q, want %s among them", part, got[part], state)
		}
	}
}
