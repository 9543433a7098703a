package app

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/bench"
)

func TestBench_MeasuresAndCleansUp(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	report := runJSON[struct{ Loads []bench.Load }](s, "bench", "--prefix", "b", "--for", "1s", "--warm-up", "100ms", "--timeout", "1m",
		"--rate", "100", "--users", "3", "--pins", "2")
	expect.Equal(t, len(report.Loads), 4, "loads")
	for _, l := range report.Loads {
		if l.Answered == 0 || l.Quantiles["p50"] <= 0 || l.Max < l.Quantiles["p99"] {
			t.Errorf("%s: %+v", l.Name, l)
		}
	}
	out := must.Get(s.run("erase", "user:b-reader-1", "-o", "json"))(t)
	expect.Contains(t, out, "deleted_before", "erase a reader again")
	out = must.Get(s.run("query", "get", "users/user:b-watcher-1/pools?source=following", "-o", "json"))(t)
	expect.Contains(t, out, `"total":0`, "the pool of a watcher")
	out = must.Get(s.run("bench", "--prefix", "c", "--for", "300ms", "--warm-up", "0s", "--timeout", "1m", "--rate", "20",
		"--users", "2", "--pins", "1"))(t)
	expect.Contains(t, out, "\nvisits ", "as text")
	expect.Contains(t, out, "\npublish ", "as text")
}
