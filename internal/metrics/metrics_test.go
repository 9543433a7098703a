package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestSet(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := New(reg, "test_")
	s.Counter("a_total", "As.").Inc()
	s.Counters("b_total", "Bs.", "kind").WithLabelValues("x").Inc()
	s.Gauge("c", "C.").Set(2 + Flag(true) + Flag(false))
	s.Measure("d", "D.", prometheus.Labels{"of": "y"}, func() float64 { return 4 })
	s.Seconds("e_seconds", "E.", 0.5, 2).Observe(0.7)
	s.SecondsBy("f_seconds", "F.", 1, 1, "kind").WithLabelValues("x").Observe(1)
	must.OK(t, s.Err())
	families := must.Get(reg.Gather())(t)
	var got strings.Builder
	for _, f := range families {
		must.Get(expfmt.MetricFamilyToText(&got, f))(t)
	}
	const want = `# HELP test_a_total As.
# TYPE test_a_total counter
test_a_total 1
# HELP test_b_total Bs.
# TYPE test_b_total counter
test_b_total{kind="x"} 1
# HELP test_c C.
# TYPE test_c gauge
test_c 3
# HELP test_d D.
# TYPE test_d gauge
test_d{of="y"} 4
# HELP test_e_seconds E.
# TYPE test_e_seconds histogram
test_e_seconds_bucket{le="0.5"} 0
test_e_seconds_bucket{le="1"} 1
test_e_seconds_bucket{le="+Inf"} 1
test_e_seconds_sum 0.7
test_e_seconds_count 1
# HELP test_f_seconds F.
# TYPE test_f_seconds histogram
test_f_seconds_bucket{kind="x",le="1"} 1
test_f_seconds_bucket{kind="x",le="+Inf"} 1
test_f_seconds_sum{kind="x"} 1
test_f_seconds_count{kind="x"} 1
`
	expect.Equal(t, got.String(), want, "metrics")
	s.Counter("a_total", "As.")
	expect.Fails(t, s.Err(), "second registration of a metric")
}
