// Package metricstest reads metrics.
package metricstest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Values returns the values of a metric: those of a counter or gauge, or the numbers of observations of a histogram. The keys are
// the values of the labels, in the order of the labels' names.
func Values(t testing.TB, from prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, f := range must.Get(from.Gather())(t) {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := strings.Join(convert.All(m.GetLabel(), (*dto.LabelPair).GetValue), " ")
			values[labels] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// Sum returns the sum of Values. A metric that does not exist fails the test.
func Sum(t testing.TB, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	values := Values(t, from, name)
	must.AtLeast(t, len(values), 1, "metrics with the name %s", name)
	for _, value := range values {
		sum += value
	}
	return sum
}
