package test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// rule is an alert of deploy/monitoring/alerts.yml.
type rule struct {
	Alert string
	Expr  string
	For   time.Duration
}

// readRules returns the alerts by name.
func readRules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	must.OK(t, yaml.Unmarshal([]byte(readText(t, "deploy/monitoring/alerts.yml")), &file))
	rules := map[string]rule{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			rules[r.Alert] = r
		}
	}
	return rules
}

// alertCase is a case of alerts.txt.
type alertCase struct {
	name   string
	fires  bool
	series metrics
}

// readCases returns the cases of alerts.txt by alert.
func readCases(t *testing.T) map[string][]alertCase {
	t.Helper()
	cases, alert := map[string][]alertCase{}, ""
	for line := range strings.Lines(readText(t, "test/testdata/alerts.txt")) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case kind == "" || kind == "#":
		case line[0] == '\t':
			last := &cases[alert][len(cases[alert])-1]
			last.series = append(last.series, parseSeries(t, strings.TrimSpace(line)))
		case kind == "alert":
			alert = rest
		case kind == "fires" || kind == "silent":
			cases[alert] = append(cases[alert], alertCase{name: strings.TrimSpace(line), fires: kind == "fires"})
		default:
			t.Fatalf("alerts.txt: unknown line %q", line)
		}
	}
	return cases
}

// interval is the time between two samples of a series.
const interval = 30 * time.Second

// metrics are series with a sample per interval since the Unix epoch.
type metrics []storage.Series

// sample is the value number n of a series. It implements chunks.Sample, except for histograms.
type sample struct {
	chunks.Sample
	n     int
	value float64
}

func (s sample) T() int64                 { return at(s.n).UnixMilli() }
func (s sample) F() float64               { return s.value }
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

func at(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * interval) }

// parseSeries parses a series in the notation of Prometheus's rule tests.
func parseSeries(t *testing.T, text string) storage.Series {
	t.Helper()
	name, values, err := parser.ParseSeriesDesc(text)
	must.OK(t, err)
	return newSeries(name, values)
}

func newSeries(name labels.Labels, values []parser.SequenceValue) storage.Series {
	var samples []chunks.Sample
	for n, v := range values {
		if !v.Omitted {
			samples = append(samples, sample{n: n, value: v.Value})
		}
	}
	return storage.NewListSeries(name, samples)
}

// last returns the number of the last sample.
func (m metrics) last() (last int) {
	for _, series := range m {
		for it := series.Iterator(nil); it.Next() != chunkenc.ValNone; {
			last = max(last, int(it.AtT()/interval.Milliseconds()))
		}
	}
	return last
}

// Querier implements storage.Queryable.
func (m metrics) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{}
		for _, series := range m {
			if !slices.ContainsFunc(matchers, func(by *labels.Matcher) bool { return !by.Matches(series.Labels().Get(by.Name)) }) {
				found.rest = append(found.rest, series)
			}
		}
		return found
	}}, nil
}

// seriesSet iterates over series. It implements storage.SeriesSet.
type seriesSet struct {
	current storage.Series
	rest    metrics
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}
func (s *seriesSet) At() storage.Series                { return s.current }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// evaluate returns the result of an expression at the time of sample n.
func (m metrics) evaluate(t *testing.T, expr string, n int) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: time.Minute})
	query := must.Get(engine.NewInstantQuery(t.Context(), m, nil, expr, at(n)))(t)
	defer query.Close()
	return must.Get(query.Exec(t.Context()).Vector())(t)
}

// firing returns the labels for which a rule fires at the last sample: those for which its expression holds since r.For.
func (m metrics) firing(t *testing.T, r rule) (firing []string) {
	t.Helper()
	last := m.last()
	first := last - int(r.For/interval)
	for n := first; n <= last; n++ {
		var now []string
		for _, s := range m.evaluate(t, r.Expr, n) {
			now = append(now, s.Metric.String())
		}
		if n > first {
			now = slices.DeleteFunc(now, func(labels string) bool { return !slices.Contains(firing, labels) })
		}
		firing = now
	}
	return firing
}

// Each alert must fire for the metrics of its failure, and not for those of a healthy process.
func TestAlerts_FireOnlyForTheirFailure(t *testing.T) {
	rules, cases := readRules(t), readCases(t)
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		for _, fires := range []bool{true, false} {
			if !slices.ContainsFunc(cases[name], func(c alertCase) bool { return c.fires == fires }) {
				t.Errorf("%s: alerts.txt has no case with fires = %t", name, fires)
			}
		}
		for _, c := range cases[name] {
			expect.Equal(t, len(c.series.firing(t, rules[name])) > 0, c.fires, "%s, case %q: fires", name, c.name)
		}
		delete(cases, name)
	}
	expect.Empty(t, slices.Collect(maps.Keys(cases)), "cases of alerts.txt for unknown alerts")
}

// Prometheus must accept the queries in the runbooks.
func TestRunbooks_HaveValidQueries(t *testing.T) {
	queries := regexp.MustCompile("`([^`]*smartfeed_[^`]*)`").FindAllStringSubmatch(readText(t, "docs/operations/runbooks.md"), -1)
	for _, query := range queries {
		metrics{}.evaluate(t, query[1], 0)
	}
	expect.AtLeast(t, len(queries), 20, "queries")
}

// No alert fires for a process that processes events, although some of its groups are idle. The test skips alerts on
// latencies, because they depend on the load of the machine, but the buckets that they name must exist.
func TestAlerts_AreSilentForHealthyProcess(t *testing.T) {
	cfg := testConfig(t)
	cfg.Admin = child.FreeAddress(t)
	p := start(t, app.Dev, cfg)
	publishViews := func(n int) {
		var events []map[string]any
		for i := range n {
			events = append(events, map[string]any{
				"stream": "actions", "verb": "view", "actor": "user:ada", "object": "pin:1",
				"id": fmt.Sprint("view-", n, "-", i), "time": time.Now().Format(time.RFC3339Nano),
			})
		}
		p.publish(events...)
		p.wait()
	}
	publishViews(1)
	before := scrape(t, cfg.Admin)
	publishViews(1200)
	m := between(before, scrape(t, cfg.Admin))
	bucket := regexp.MustCompile(`\w+_bucket{[^}]*le="[^}]*}`)
	for name, r := range readRules(t) {
		for _, selector := range bucket.FindAllString(r.Expr, -1) {
			expect.AtLeast(t, len(m.evaluate(t, selector, m.last())), 1, "%s: histograms with the bucket %s", name, selector)
		}
		if strings.Contains(r.Expr, "_bucket") {
			continue
		}
		expect.Empty(t, m.firing(t, r), "labels for which %s fires", name)
	}
	if len(m.evaluate(t, `sum(rate(smartfeed_group_records_processed_total{group="objects"}[5m])) > 1`, m.last())) == 0 {
		t.Error("the group objects processes almost no records: the test covers nothing")
	}
	if len(m.evaluate(t, `sum by (group) (rate(smartfeed_group_commits_total{group="retries"}[5m])) == 0`, m.last())) == 0 {
		t.Error("the group retries is not idle: the test does not cover idle groups")
	}
}

// scrape returns the metrics that an address serves, by the labels of the series.
func scrape(t *testing.T, address string) map[string]promql.Sample {
	t.Helper()
	res := must.Get(http.Get("http://" + address + "/metrics"))(t)
	defer res.Body.Close()
	text := must.Get(io.ReadAll(res.Body))(t)
	found := map[string]promql.Sample{}
	lines := textparse.NewPromParser(text, labels.NewSymbolTable())
	for {
		switch entry, err := lines.Next(); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		case entry == textparse.EntrySeries:
			var name labels.Labels
			lines.Labels(&name)
			_, _, value := lines.Series()
			found[name.String()] = promql.Sample{Metric: name, F: value}
		}
	}
}

// between returns series that change linearly between two scrapes, as if they were ten minutes apart.
func between(before, after map[string]promql.Sample) (m metrics) {
	const samples = int(10 * time.Minute / interval)
	for key, last := range after {
		first, existed := before[key]
		values := make([]parser.SequenceValue, samples+1)
		for i := range values {
			values[i] = parser.SequenceValue{Value: first.F + (last.F-first.F)*float64(i)/float64(samples), Omitted: !existed && i < samples}
		}
		m = append(m, newSeries(last.Metric, values))
	}
	return m
}
