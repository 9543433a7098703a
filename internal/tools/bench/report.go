package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
)

// quantiles are the reported quantiles.
var quantiles = [...]struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

// Report is the result of a run, as JSON or text.
type Report struct {
	Version string  `json:"version"`
	Prefix  string  `json:"prefix"`
	Users   int     `json:"users"`
	Seconds float64 `json:"seconds"`
	WarmUp  float64 `json:"warm_up_seconds"`
	Loads   []Load  `json:"loads"`

	cfg     Config
	results []measure.Result
}

// NewReport returns the report on the results of a run. version is that of the program.
func NewReport(version string, cfg Config, results []measure.Result) Report {
	return Report{
		Version: version, Prefix: cfg.Workload.Prefix, Users: cfg.Workload.Users, Seconds: cfg.Measure.Lasting.Seconds(),
		WarmUp: cfg.Measure.WarmUp.Seconds(), Loads: loads(results), cfg: cfg, results: results,
	}
}

// Text writes the report as text.
func (r Report) Text(out io.Writer) error {
	fmt.Fprintf(out, "%-10s %9s %9s %9s %9s %7s", "", "target/s", "done/s", "answered", "degraded", "failed")
	for _, q := range quantiles {
		fmt.Fprintf(out, " %9s", q.name)
	}
	fmt.Fprintf(out, " %9s\n", "max")
	for _, l := range r.results {
		fmt.Fprintf(out, "%-10s %9.1f %9.1f %9d %9d %7d", l.Name, l.Rate, l.Done, l.Answered, l.Degraded, l.Failed)
		for _, q := range quantiles {
			fmt.Fprintf(out, " %9s", short(l.Latency.Quantile(q.q)))
		}
		fmt.Fprintf(out, " %9s\n", short(l.Latency.Max()))
	}
	_, err := fmt.Fprintf(out, "latencies count from the due time of a request; %d readers, %s after %s of warm-up\n",
		r.Users, r.cfg.Measure.Lasting, r.cfg.Measure.WarmUp)
	return err
}

// short formats a latency with three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// Load is the result of one kind of request. Latencies are in milliseconds.
type Load struct {
	Name      string             `json:"name"`
	Rate      float64            `json:"target_per_second"`
	Done      float64            `json:"done_per_second"`
	Answered  int64              `json:"answered"`
	Degraded  int64              `json:"degraded"`
	Failed    int64              `json:"failed"`
	Mean      float64            `json:"mean_ms"`
	Max       float64            `json:"max_ms"`
	Quantiles map[string]float64 `json:"quantiles_ms"`
}

func loads(results []measure.Result) []Load {
	all := []Load{}
	for _, r := range results {
		one := Load{
			Name: r.Name, Rate: r.Rate, Done: r.Done, Answered: r.Answered, Degraded: r.Degraded, Failed: r.Failed,
			Mean: millis(r.Latency.Mean()), Max: millis(r.Latency.Max()), Quantiles: map[string]float64{},
		}
		for _, q := range quantiles {
			one.Quantiles[q.name] = millis(r.Latency.Quantile(q.q))
		}
		all = append(all, one)
	}
	return all
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
