package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// metric describes a metric, which may have no values yet.
type metric struct {
	help   string
	kind   string // counter, gauge or histogram
	labels []string
}

// described adds the metrics of a product to found.
func described(t *testing.T, found map[string]metric, cfg Config, pieces ...opener) {
	t.Helper()
	p := must.Get(openApp(t.Context(), cfg, slog.New(slog.DiscardHandler), pieces))(t)
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		p.metrics.Describe(all)
	}()
	kinds := map[string]string{} // of the metrics that have values
	families := must.Get(p.metrics.Gather())(t)
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	problems := must.Get(promlint.NewWithMetricFamilies(families).Lint())(t)
	for _, l := range problems {
		t.Errorf("%s: %s", l.Metric, l.Text)
	}
	form := regexp.MustCompile(`fqName: "(\w+)", help: "(.*)", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	for d := range all {
		m := form.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s: unexpected format", d)
		}
		labels := strings.Split(m[4], ",")
		for _, pair := range strings.Split(m[3], ",") {
			label, _, _ := strings.Cut(pair, "=")
			labels = append(labels, label)
		}
		kind := kinds[m[1]]
		if kind == "" && found[m[1]].kind == "" {
			kind = kindOf(m[1])
		} else if kind == "" {
			kind = found[m[1]].kind
		}
		found[m[1]] = metric{m[2], kind, append(found[m[1]].labels, labels...)}
	}
	must.OK(t, p.Close())
}

// kindOf returns the kind of a metric without values, by its name. Gauges in seconds always have a value.
func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds"):
		return "histogram"
	}
	return "gauge"
}

// allMetrics returns the metrics of all roles, with their labels.
func allMetrics(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{"up": {}} // Prometheus's own
	one := testConfig(t.TempDir())
	one.Tracing.Endpoint = "http://127.0.0.1:1"
	described(t, found, one, everything()...)
	two := testConfig(t.TempDir())
	unreachable := []string{"127.0.0.1:1"}
	two.FeedStore.Cassandra.Primary.Hosts, two.FeedStore.Cassandra.Standby.Hosts = unreachable, unreachable
	reach := func(p *App, _ context.Context) error {
		p.kafka = topics.Kafka{Brokers: unreachable}
		return nil
	}
	described(t, found, two, reach, (*App).openFeedStore)
	return found
}

// dashboard is a dashboard of Grafana.
type dashboard struct {
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               struct{ UID string }
		Targets                  []struct{ Expr, RefID string }
	}
	Templating struct{ List []struct{ Name string } }
}

// readDashboard returns a dashboard, and the text of its file.
func readDashboard(t *testing.T, file string) (d dashboard, text string) {
	t.Helper()
	text = string(must.Get(os.ReadFile("../deploy/monitoring/grafana/" + file))(t))
	must.OK(t, json.Unmarshal([]byte(text), &d))
	return d, text
}

// expressions returns the expressions of the dashboard and the alerts, by title.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	d, _ := readDashboard(t, "smartfeed.json")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			found[fmt.Sprintf("panel %d %s %s", panel.ID, panel.Title, target.RefID)] = target.Expr // two rows have panels with the same title
		}
	}
	for alert, rule := range alerts(t) {
		found["alert "+alert] = rule.Expr
	}
	return found
}

// Every panel has a description and the data source of the variable, and every query selects by the variables.
func TestDashboards_DescribePanelsAndSelectByVariables(t *testing.T) {
	selector := regexp.MustCompile(`\b(smartfeed_group_)?\w+{[^}]*}`)
	for file, variables := range map[string]int{"smartfeed.json": 4, "servers.json": 3} {
		d, text := readDashboard(t, file)
		for _, p := range d.Panels {
			if p.Type != "row" && (p.Description == "" || p.Datasource.UID != "${datasource}") {
				t.Errorf("%s, panel %s: description %q, data source %q: want a description and ${datasource}", file, p.Title, p.Description, p.Datasource.UID)
			}
			for _, target := range p.Targets {
				found := selector.FindAllStringSubmatch(target.Expr, -1)
				for _, m := range found {
					if !strings.Contains(m[0], `job=~"$job",instance=~"$instance"`) || m[1] != "" && !strings.Contains(m[0], `group=`) {
						t.Errorf("%s, panel %s: %s does not select by the variables", file, p.Title, m[0])
					}
				}
				if metrics := strings.Count(target.Expr, "smartfeed_"); len(found) == 0 || metrics > len(found) {
					t.Errorf("%s, panel %s: a metric of %s has no selector", file, p.Title, target.Expr)
				}
			}
		}
		expect.Equal(t, len(d.Templating.List), variables, "variables of %s", file)
		for _, v := range d.Templating.List {
			if !strings.Contains(text, `=~\"$`+v.Name+`\"`) && !strings.Contains(text, "${"+v.Name+"}") {
				t.Errorf("%s: no panel uses the variable %s", file, v.Name)
			}
		}
	}
}

// rule is an alert.
type rule struct {
	Alert               string
	Expr                string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) map[string]rule {
	t.Helper()
	text := must.Get(os.ReadFile("../deploy/monitoring/alerts.yml"))(t)
	var rules struct{ Groups []struct{ Rules []rule } }
	must.OK(t, yaml.Unmarshal(text, &rules))
	found := map[string]rule{}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			found[r.Alert] = r
		}
	}
	return found
}

// The dashboard and the alerts must use only existing metrics and labels.
func TestMonitoring_UsesExistingMetrics(t *testing.T) {
	known := allMetrics(t)
	name := regexp.MustCompile(`\b(smartfeed_\w+|go_\w+|process_\w+|up)\b`)
	grouping := regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	matcher := regexp.MustCompile(`(\w+)=~?"`)
	all := expressions(t)
	for title, expr := range all {
		labels := []string{"instance", "job", "role", "le", ""} // added by Prometheus
		for _, m := range name.FindAllString(expr, -1) {
			base := m
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if trimmed, is := strings.CutSuffix(m, suffix); is {
					base = trimmed
				}
			}
			own, exists := known[base]
			expect.True(t, exists, "metric %s of %s exists", m, title)
			labels = append(labels, own.labels...)
		}
		var used []string
		for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
			used = append(used, strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")...)
		}
		for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
			used = append(used, m[1])
		}
		for _, label := range used {
			expect.True(t, slices.Contains(labels, label), "%s uses the label %s, one of %v", title, label, labels)
		}
		expect.Equal(t, strings.Count(expr, "("), strings.Count(expr, ")"), "%s: parentheses of %s", title, expr)
	}
	expect.AtLeast(t, len(all), 30, "expressions")
}

// A changed name, type, help or label can break a user's dashboard, so the golden file makes it visible. UPDATE=1 rewrites
// the file.
func TestMetrics_MatchGoldenFile(t *testing.T) {
	const file = "testdata/metrics.golden"
	found := allMetrics(t)
	var lines []string
	for name, m := range found {
		labels := slices.DeleteFunc(m.labels, func(label string) bool { return label == "" })
		slices.Sort(labels)
		if strings.HasPrefix(name, "smartfeed_") {
			lines = append(lines, name+"{"+strings.Join(slices.Compact(labels), ",")+"} "+m.kind+" "+m.help+"\n")
		}
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.MkdirAll("testdata", 0o755))
		must.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	expect.NoDiff(t, strings.Split(got, "\n"), strings.Split(string(want), "\n"), "%s", file)
}

// Each objective in docs/operations/monitor.md must have a histogram, an alert, and a panel.
func TestObjectives_HaveAlertAndPanel(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/operations/monitor.md"))(t)
	known, rules := allMetrics(t), alerts(t)
	objectives := regexp.MustCompile("(?m)^\\| .* \\| `(smartfeed_\\w+)`[^|]*\\|[^|]*\\| (\\w+) \\|$").FindAllStringSubmatch(string(text), -1)
	must.AtLeast(t, len(objectives), 7, "objectives")
	panels := panelExpressions(t)
	for _, o := range objectives {
		expect.Contains(t, panels, "("+o[1]+"_bucket{", "panels of %s", o[1])
		if _, exists := known[o[1]]; !exists {
			t.Errorf("%s: unknown metric", o[1])
		}
		rule, exists := rules[o[2]]
		if !exists || !strings.Contains(rule.Expr, o[1]+"_bucket") {
			t.Errorf("%s: the alert %s does not use it: %q", o[1], o[2], rule.Expr)
		}
	}
}

// The documents name only existing metrics, also in queries.
func TestOperations_NameExistingMetrics(t *testing.T) {
	known, named := allMetrics(t), 0
	guides := must.Get(filepath.Glob("../docs/*/*.md"))(t)
	for _, guide := range guides {
		text := must.Get(os.ReadFile(guide))(t)
		for _, name := range regexp.MustCompile(`\bsmartfeed_[a-z_]*[a-z]\b`).FindAllString(string(text), -1) {
			named++
			if _, exists := known[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")]; !exists {
				t.Errorf("%s names the unknown metric %s", guide, name)
			}
		}
	}
	expect.AtLeast(t, named, 30, "names of metrics in %v", guides)
}

// docs/operations/monitor.md lists the drop reasons and effects of the groups.
func TestMonitor_ListsDropReasonsAndEffects(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/operations/monitor.md"))(t)
	files := must.Get(filepath.Glob("../processors/*/*.go"))(t)
	declared := regexp.MustCompile(`\b(?:(?:drop|lack|effect)[A-Z]\w*\s+= |tx\.(?:Count|Effect)\()"(\w+)"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code := must.Get(os.ReadFile(file))(t)
		for _, m := range declared.FindAllStringSubmatch(string(code), -1) {
			found++
			expect.Contains(t, string(text), "`"+m[1]+"`", "docs/operations/monitor.md, on %s", file)
		}
	}
	expect.AtLeast(t, found, 50, "drop reasons and effects")
}

// The alert and a panel cover the dead letters of every writer.
func TestAlerts_CoverDeadLettersOfEveryWriter(t *testing.T) {
	alert, panels := alerts(t)["DeadLetters"].Expr, panelExpressions(t)
	writers := 0
	for name := range allMetrics(t) {
		if !strings.HasSuffix(name, "_dead_letters_total") {
			continue
		}
		writers++
		expect.Contains(t, alert, "increase("+name+"[10m])", "alert DeadLetters")
		expect.Contains(t, panels, name, "panels")
	}
	expect.AtLeast(t, writers, 4, "metrics of dead letters")
}

// panelExpressions returns the expressions of the dashboard.
func panelExpressions(t *testing.T) (panels string) {
	t.Helper()
	for title, expr := range expressions(t) {
		if strings.HasPrefix(title, "panel ") {
			panels += expr + "\n"
		}
	}
	return panels
}

// Every alert links to its section in docs/operations/runbooks.md, and the section is complete. There are no other sections.
func TestAlerts_HaveRunbooks(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/operations/runbooks.md"))(t)
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		sections[name] = body
	}
	rules := alerts(t)
	expect.NoDiff(t, slices.Sorted(maps.Keys(sections)), slices.Sorted(maps.Keys(rules)), "sections of docs/operations/runbooks.md")
	severities := map[string]string{"page": "\n**Page.** ", "ticket": "\n**Ticket.** "}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if url, want := rules[name].Annotations["runbook_url"], "/docs/operations/runbooks.md#"+strings.ToLower(name); !strings.HasSuffix(url, want) {
			t.Errorf("%s: runbook_url is %q, want one that ends in %s", name, url, want)
		}
		severity, known := severities[rules[name].Labels["severity"]]
		expect.True(t, known, "%s: severity %q is page or ticket", name, rules[name].Labels["severity"])
		for _, part := range []string{severity, "\n- **Impact.** ", "\n- **Confirm.** ", "\n- **Do.** ", "\n- **Escalate** "} {
			expect.Contains(t, strings.ReplaceAll(sections[name], ".**\n", ".** "), part, "section of %s", name)
		}
	}
}
