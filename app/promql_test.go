package app

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// sample is a series at two times: at the start of every window of an expression, and now. NaN: it did not exist.
type sample struct {
	labels  map[string]string
	was, is float64
}

// vector is the result of an expression. A number is one sample without labels.
type vector []sample

// world is every sample, by metric.
type world map[string]vector

var gone = math.NaN()

// expression evaluates the part of PromQL that the alerts use, while it parses it. It differs from Prometheus: there
// are no times between the two, counters are not reset, every rate has a window of five minutes, and a quantile is the
// upper bound of its bucket.
type expression struct {
	t     *testing.T
	world world
	words []string
}

var word = regexp.MustCompile(`"[^"]*"|=~|!~|!=|==|[\w.:]+|\S`)

// eval evaluates an expression in a world.
func (w world) eval(t *testing.T, expr string) vector {
	t.Helper()
	e := &expression{t, w, word.FindAllString(expr, -1)}
	v := e.union()
	if len(e.words) > 0 {
		t.Fatalf("%q is not understood from %q on", expr, e.words)
	}
	return v
}

func (e *expression) peek() string {
	if len(e.words) == 0 {
		return ""
	}
	return e.words[0]
}

func (e *expression) next() string {
	e.t.Helper()
	w := e.peek()
	if w == "" {
		e.t.Fatal("the expression ends too soon")
	}
	e.words = e.words[1:]
	return w
}

// took consumes the next word if it is one of any.
func (e *expression) took(any ...string) string {
	if slices.Contains(any, e.peek()) {
		return e.next()
	}
	return ""
}

func (e *expression) must(want string) {
	e.t.Helper()
	if got := e.next(); got != want {
		e.t.Fatalf("got %q, want %q before %q", got, want, e.words)
	}
}

// list reads a list in parentheses or braces.
func (e *expression) list(open, end string) (words []string) {
	e.must(open)
	for e.took(end) == "" {
		words = append(words, e.next())
	}
	return words
}

func (e *expression) union() vector {
	v := e.without()
	for e.took("or") != "" {
		for _, s := range e.without() {
			if !v.has(s) {
				v = append(v, s)
			}
		}
	}
	return v
}

func (e *expression) without() vector {
	v := e.comparison()
	for e.took("unless") != "" {
		v = slices.DeleteFunc(slices.Clone(v), e.comparison().has)
	}
	return v
}

func (v vector) has(s sample) bool {
	return slices.ContainsFunc(v, func(o sample) bool { return maps.Equal(s.labels, o.labels) })
}

func (e *expression) comparison() vector {
	v := e.product()
	op := e.took("==", "!=", "<", ">")
	if op == "" {
		return v
	}
	than := e.product().number()
	return slices.DeleteFunc(slices.Clone(v), func(s sample) bool {
		return !map[string]bool{"==": s.is == than, "!=": s.is != than, "<": s.is < than, ">": s.is > than}[op]
	})
}

// number returns the value of a scalar, or NaN, which equals nothing.
func (v vector) number() float64 {
	if len(v) != 1 {
		return gone
	}
	return v[0].is
}

func (e *expression) product() vector {
	v := e.operand()
	for e.took("*") != "" {
		by := e.operand().number()
		v = v.each(func(s sample) float64 { return s.is * by })
	}
	return v
}

// each applies f to every sample and drops results that are NaN.
func (v vector) each(f func(sample) float64) (all vector) {
	for _, s := range v {
		if s.is = f(s); !math.IsNaN(s.is) {
			all = append(all, s)
		}
	}
	return all
}

func (e *expression) operand() vector {
	name := e.next()
	if n, err := strconv.ParseFloat(name, 64); err == nil {
		return vector{{is: n}}
	}
	switch name {
	case "(":
		v := e.union()
		e.must(")")
		return v
	case "sum", "max":
		return e.aggregate(name)
	case "scalar", "rate", "increase", "max_over_time", "histogram_quantile", "label_replace":
		return e.call(name)
	}
	return e.selector(name)
}

func (e *expression) aggregate(how string) (all vector) {
	var by []string
	if e.took("by") != "" {
		by = e.list("(", ")")
	}
	e.must("(")
	for _, s := range e.union() {
		labels := maps.Clone(s.labels)
		maps.DeleteFunc(labels, func(label, _ string) bool { return !slices.Contains(by, label) })
		i := slices.IndexFunc(all, func(o sample) bool { return maps.Equal(o.labels, labels) })
		switch {
		case i < 0:
			all = append(all, sample{labels: labels, is: s.is})
		case how == "sum":
			all[i].is += s.is
		default:
			all[i].is = max(all[i].is, s.is)
		}
	}
	e.must(")")
	return all
}

// window is the length of a rate's window in seconds.
const window = 300

func (e *expression) call(name string) (v vector) {
	e.must("(")
	switch name {
	case "scalar":
		v = e.union()
	case "rate":
		v = e.union().each(func(s sample) float64 { return (s.is - s.was) / window })
	case "increase":
		v = e.union().each(func(s sample) float64 { return s.is - s.was })
	case "max_over_time":
		v = e.union().each(func(s sample) float64 {
			if math.IsNaN(s.is) || s.was > s.is {
				return s.was
			}
			return s.is
		})
	case "histogram_quantile":
		q := e.union().number()
		e.must(",")
		v = quantile(e.t, q, e.union())
	case "label_replace": // to a new label
		v = e.union()
		e.must(",")
		label := strings.Trim(e.next(), `"`)
		e.must(",")
		to := strings.Trim(e.next(), `"`)
		for i := range v {
			v[i].labels = map[string]string{label: to}
		}
		for e.peek() != ")" {
			e.next()
		}
	}
	e.must(")")
	return v
}

// quantile returns the quantile of each histogram: the upper bound of its bucket.
func quantile(t *testing.T, q float64, buckets vector) (all vector) {
	t.Helper()
	type histogram struct{ bounds, counts []float64 }
	by := map[string]*histogram{}
	for _, b := range buckets {
		le, err := strconv.ParseFloat(b.labels["le"], 64)
		if err != nil {
			t.Fatal(err)
		}
		rest := maps.Clone(b.labels)
		delete(rest, "le")
		name := fmt.Sprint(rest)
		if by[name] == nil {
			by[name] = new(histogram)
			all = append(all, sample{labels: rest})
		}
		by[name].bounds, by[name].counts = append(by[name].bounds, le), append(by[name].counts, b.is)
	}
	return all.each(func(s sample) float64 {
		h := by[fmt.Sprint(s.labels)]
		rank, at := q*slices.Max(h.counts), gone
		for i, n := range h.counts {
			if n > 0 && n >= rank && !(h.bounds[i] > at) {
				at = h.bounds[i]
			}
		}
		return at
	})
}

func (e *expression) selector(name string) vector {
	var found vector
	matches := []func(map[string]string) bool{}
	if e.peek() == "{" {
		matches = matchers(e.list("{", "}"))
	}
	for _, s := range e.world[name] {
		if !slices.ContainsFunc(matches, func(m func(map[string]string) bool) bool { return !m(s.labels) }) {
			found = append(found, s)
		}
	}
	if e.peek() == "[" {
		e.list("[", "]")
		return found
	}
	before := e.took("offset") != ""
	if before {
		e.next()
	}
	return found.each(func(s sample) float64 {
		if before {
			return s.was
		}
		return s.is
	})
}

// matchers reads label="value", separated by commas.
func matchers(words []string) (all []func(map[string]string) bool) {
	for chunk := range slices.Chunk(words, 4) {
		label, op, value := chunk[0], chunk[1], strings.Trim(chunk[2], `"`)
		like := regexp.MustCompile("^(?:" + value + ")$")
		all = append(all, func(labels map[string]string) bool {
			switch op {
			case "=":
				return labels[label] == value
			case "!=":
				return labels[label] != value
			}
			return like.MatchString(labels[label]) == (op == "=~")
		})
	}
	return all
}

// add reads a line such as `name{label="value"} 1 2`, or `took name{label="value"} 0.5`: see testdata/alerts.txt.
func (w world) add(t *testing.T, line string) {
	t.Helper()
	form := regexp.MustCompile(`^(took )?(\w+)(?:\{(.*)\})? ([\d.]+|-)(?: ([\d.]+|-))?$`).FindStringSubmatch(line)
	if form == nil {
		t.Fatalf("%q: is no sample", line)
	}
	name, labels := form[2], map[string]string{}
	for _, pair := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(form[3], -1) {
		labels[pair[1]] = pair[2]
	}
	if form[1] == "" {
		w[name] = append(w[name], sample{labels, at(form[4]), at(form[5])})
		return
	}
	for le, n := range map[string]float64{"0.0001": 0, form[4]: 100, "+Inf": 100} {
		bucket := maps.Clone(labels)
		bucket["le"] = le
		w[name+"_bucket"] = append(w[name+"_bucket"], sample{bucket, 0, n})
	}
}

func at(value string) float64 {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return gone
	}
	return n
}

// gathered adds the present metrics of a process to the previous ones; nil: none. For histograms it adds the count.
func (w world) gathered(t *testing.T, from prometheus.Gatherer) world {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	now := world{}
	for _, f := range families {
		name := f.GetName()
		if f.GetType() == dto.MetricType_HISTOGRAM {
			name += "_count"
		}
		for _, m := range f.GetMetric() {
			is := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			s := sample{labels: map[string]string{}, was: gone, is: is}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			if i := slices.IndexFunc(w[name], func(o sample) bool { return maps.Equal(o.labels, s.labels) }); i >= 0 {
				s.was = w[name][i].is
			}
			now[name] = append(now[name], s)
		}
	}
	return now
}
