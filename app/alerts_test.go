package app

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The alerts in the table of failures exist.
func TestOperations_FailuresNameExistingAlerts(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	must.OK(t, err)
	_, table, _ := strings.Cut(string(text), "### Failures\n")
	table, _, _ = strings.Cut(table, "\n### ")
	quoted := regexp.MustCompile("`[^`]*`")
	named, rules := map[string]bool{}, alerts(t)
	for _, name := range regexp.MustCompile(`\b(?:[A-Z][a-z]+){2,}\b`).FindAllString(quoted.ReplaceAllString(table, ""), -1) {
		named[name] = true
		if _, known := rules[name]; !known {
			t.Errorf("the table of failures names the unknown alert %s", name)
		}
	}
	if len(named) < 12 {
		t.Errorf("found only %d alerts in the table of failures", len(named))
	}
}

// gauges returns the sums of a metric by one of its labels.
func (s *started) gauges(metric, label string) map[string]float64 {
	s.t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
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

// awaitLackingMetric waits until the metric on which the alert PartLacking fires reports a part.
func (s *started) awaitLackingMetric(part string) {
	s.t.Helper()
	eventually.True(s.t, "smartfeed_lacking reports "+part, func() bool { return s.gauges("smartfeed_lacking", "part")[part] == 1 })
}
