package app

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/topics"
)

// stated is a case of testdata/alerts.txt.
type stated struct {
	calls bool
	world world
}

// states reads testdata/alerts.txt, by alert.
func states(t *testing.T) map[string][]stated {
	t.Helper()
	text, err := os.ReadFile("testdata/alerts.txt")
	if err != nil {
		t.Fatal(err)
	}
	found, alert := map[string][]stated{}, ""
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case kind == "" || kind == "#":
		case line[0] == '\t':
			list := found[alert]
			list[len(list)-1].world.add(t, strings.TrimSpace(line))
		case kind == "alert":
			alert = rest
		case kind == "calls" || kind == "calm":
			found[alert] = append(found[alert], stated{kind == "calls", world{}})
		default:
			t.Fatalf("testdata/alerts.txt: %q", line)
		}
	}
	return found
}

// Each alert fires for the samples of its failure, and not for those of a healthy product.
func TestAlertsCallWhenTheyShould(t *testing.T) {
	rules, all := alerts(t), states(t)
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		for _, want := range []bool{true, false} {
			if !slices.ContainsFunc(all[name], func(s stated) bool { return s.calls == want }) {
				t.Errorf("%s: no samples are stated of which it is %t", name, want)
			}
		}
		for _, s := range all[name] {
			if got := s.world.eval(t, rules[name].Expr); len(got) > 0 != s.calls {
				t.Errorf("%s comes to %v of %v, want that it calls: %t", name, got, s.world, s.calls)
			}
		}
	}
	for name := range all {
		if _, known := rules[name]; !known {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// The alerts in the table of failures exist.
func TestFailuresNameAlerts(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "### Failures\n")
	table, _, _ = strings.Cut(table, "\n### ")
	quoted := regexp.MustCompile("`[^`]*`")
	named, rules := map[string]bool{}, alerts(t)
	for _, name := range regexp.MustCompile(`\b(?:[A-Z][a-z]+){2,}\b`).FindAllString(quoted.ReplaceAllString(table, ""), -1) {
		named[name] = true
		if _, known := rules[name]; !known {
			t.Errorf("the table of failures names %s, and there is no such alert", name)
		}
	}
	if len(named) < 12 {
		t.Errorf("the table of failures names %d alerts: is it read?", len(named))
	}
}

// nowCalling returns the alerts that fire for a product's present and previous metrics, with the labels that they name.
// It skips alerts on latencies, because a busy machine is slow.
func (s *started) nowCalling(before world) (now world, names []string) {
	s.t.Helper()
	now = before.gathered(s.t, s.metrics)
	for name, rule := range alerts(s.t) {
		if strings.Contains(rule.Expr, "histogram_quantile") {
			continue
		}
		for _, v := range now.eval(s.t, rule.Expr) {
			names = append(names, strings.TrimSpace(name+" "+v.labels["group"]+v.labels["part"]))
		}
	}
	return now, names
}

// called waits until an alert of a group or part fires.
func (s *started) called(want string) {
	s.t.Helper()
	var before world
	var names []string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("there are %q", names)
		}
	}()
	eventually.True(s.t, want, func() bool {
		before, names = s.nowCalling(before)
		return slices.Contains(names, want)
	})
}

// A product that processes events fires no alert, although some groups are idle: there are no dead letters, follows or
// pins.
func TestACalmProductCallsNobody(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.goesOn(1) // so that each counter exists
	before, _ := s.nowCalling(nil)
	told := &story{now: time.Now().Add(-time.Minute)}
	for range 2 * window {
		told.tell("actions", "user:ada", "view", "pin:1", nil)
	}
	s.publish(told.events...)
	now, names := s.nowCalling(before)
	if len(names) > 0 {
		t.Errorf("somebody is called: %q", names)
	}
	if len(now.eval(t, `sum(rate(smartfeed_rows_records_applied_total{group="objects"}[5m])) > 1`)) == 0 {
		t.Error("objects has next to nothing to do")
	}
	idle := now.eval(t, `sum by (group) (rate(smartfeed_rows_commits_total[5m])) == 0`)
	if !idle.has(sample{labels: map[string]string{"group": topics.Retries}}) {
		t.Errorf("%v do nothing, want retries among them", idle)
	}
}

// A failed product fires an alert from its own metrics.
func TestAProductThatFailsCallsSomebody(t *testing.T) {
	t.Parallel()
	f := &faulty{parts: map[string]*breakable{}}
	f.started = startPieces(t, testConfig(t.TempDir()), append(everything(), f.wrap))
	f.awaitLack(200, "", "")
	for _, part := range []string{topics.Pools, topics.Retries, topics.Features, "kafka"} {
		f.parts[part].set(true)
		f.called("PartLacking " + part)
		if slices.Contains(topics.RowGroups(), part) {
			f.called("PartitionsUnowned " + part)
		}
		f.parts[part].set(false)
		f.awaitLack(200, "", "")
	}
	for _, group := range topics.RowGroups() {
		f.parts[group].set(true)
	}
	for _, group := range topics.RowGroups() { // without an owned partition there is nothing to compare with
		f.called("PartLacking " + group)
	}
}
