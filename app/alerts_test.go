package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The tables of failures must name only existing alerts, and a test for each failure.
func TestOperations_FailuresNameExistingAlertsAndTests(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/operations/failures.md"))(t)
	tables, rest, found := strings.Cut(string(text), "\n## Refill a feed store\n")
	if !found || rest == "" {
		t.Fatal("docs/operations/failures.md: no tables before the section on refills")
	}
	failures, table := 0, ""
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(tables, -1) {
		if strings.HasPrefix(row, "| what fails ") || strings.HasPrefix(row, "|---") {
			continue
		}
		failures++
		table += row + "\n"
		cells := strings.Split(row, "|")
		expect.Contains(t, cells[len(cells)-2], "`Test", "a test of the failure %s", cells[1])
	}
	expect.AtLeast(t, failures, 25, "failures")
	quoted := regexp.MustCompile("`[^`]*`")
	named, rules := map[string]bool{}, alerts(t)
	for _, name := range regexp.MustCompile(`\b(?:[A-Z][a-z]+){2,}\b`).FindAllString(quoted.ReplaceAllString(table, ""), -1) {
		named[name] = true
		if _, known := rules[name]; !known {
			t.Errorf("a table of failures names the unknown alert %s", name)
		}
	}
	expect.AtLeast(t, len(named), 12, "alerts in the tables of failures")
}

// gauges returns the sums of a metric by one of its labels.
func (s *started) gauges(metric, label string) map[string]float64 {
	s.t.Helper()
	families := must.Get(s.metrics.Gather())(s.t)
	sums := map[string]float64{}
	for _, f := range families {
		if f.GetName() != metric {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					sums[l.GetValue()] += m.GetGauge().GetValue()
				}
			}
		}
	}
	return sums
}

// awaitNotReadyMetric waits until the metric on which the alert ComponentNotReady fires has its value.
func (s *started) awaitNotReadyMetric() {
	s.t.Helper()
	eventually.True(s.t, "smartfeed_ready is 0", func() bool {
		families := must.Get(s.metrics.Gather())(s.t)
		at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "smartfeed_ready" })
		return families[at].GetMetric()[0].GetGauge().GetValue() == 0
	})
}
