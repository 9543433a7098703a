package stream

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The examples of the cost model follow from its constants. UPDATE=1 rewrites them.
func TestCostModel_ExamplesFollowFromConstants(t *testing.T) {
	const file = "../../../../docs/design/cost-model.md"
	kinds := []string{"follow", "pin", "delivery", "action", "visit"}
	perSecond := map[string]float64{"pin": 25, "delivery": 2500, "action": 20e6 / 12e3, "visit": 5e6 / 12e3} // of a million users, at the peak
	text := string(must.Get(os.ReadFile(file))(t))
	total := func(constant string, of ...string) (sum float64) {
		_, row := rowOf(t, text, constant)
		for i, kind := range kinds {
			if strings.Contains(strings.Join(of, " "), kind) {
				sum += perSecond[kind] * must.Get(strconv.ParseFloat(row[i], 64))(t)
			}
		}
		return sum
	}
	figures := map[string]float64{
		"cores of `process`":                    2e-6 * total("CPU of `process`, µs", kinds...),
		"cores of `serve`, all requests":        2e-6 * total("CPU of `serve`, µs", "visit"),
		"cores of each `serve`, for its copies": 2e-6 * total("CPU of `serve`, µs", "pin", "action"),
		"cores of the brokers":                  4e-6 * total("CPU of the broker, µs", kinds...),
		"transactions/s":                        total("transactions", kinds...),
		"written to topics, one replica, MB/s":  1e-6 * total("bytes written to topics", kinds...),
		"read by groups, MB/s":                  1e-6 * total("bytes read by groups and the feed store", kinds...),
		"read by each `serve`, MB/s":            1e-6 * total("bytes read by each `serve`", kinds...),
	}
	for _, name := range []string{"pin: `objects`", "pin: `interests`", "pin: `related`", "followee: `fanout`", "user: `actors`", "user: `pools`"} {
		_, group, _ := strings.Cut(name, " ")
		_, cells := rowOf(t, text, group)
		for i, cell := range cells {
			if cpu := regexp.MustCompile(`(\d+) µs`).FindStringSubmatch(cell); cpu != nil {
				figures[name] += 2e-6 * perSecond[[]string{"follow", "pin", "action", "visit"}[i]] * must.Get(strconv.ParseFloat(cpu[1], 64))(t)
			}
		}
	}
	want := text
	for name, figure := range figures {
		row, cells := rowOf(t, text, name)
		cells[len(cells)-2], cells[len(cells)-1] = rounded(figure), rounded(100*figure)
		want = strings.Replace(want, row, "| "+name+" | "+strings.Join(cells, " | ")+" |\n", 1)
	}
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.WriteFile(file, []byte(want), 0o644))
	} else if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(want, "\n")); diff != "" {
		t.Errorf("%s: run UPDATE=1 go test ./internal/tools/bench/stream (-page +computed):\n%s", file, diff)
	}
}

// rowOf returns a row of a Markdown table and its cells after the first one.
func rowOf(t *testing.T, text, first string) (row string, cells []string) {
	t.Helper()
	for row = range strings.Lines(text) {
		if strings.HasPrefix(row, "| "+first+" |") {
			for _, cell := range strings.Split(strings.TrimSuffix(row, "|\n"), "|")[2:] {
				cells = append(cells, strings.TrimSpace(cell))
			}
			return row, cells
		}
	}
	t.Fatalf("no row %q", first)
	return "", nil
}

// rounded returns a figure with two digits.
func rounded(f float64) string {
	two, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", f), 64)
	return strconv.FormatFloat(two, 'f', -1, 64)
}
