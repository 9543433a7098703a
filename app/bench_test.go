package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/bench"
)

func TestBench_MeasuresAndCleansUp(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	out, err := s.run("bench", "--prefix", "b", "--for", "1s", "--warm-up", "100ms", "--timeout", "1m", "--rate", "100",
		"--users", "3", "--pins", "2", "-o", "json")
	var report struct {
		Prefix string
		Loads  []bench.Load
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || len(report.Loads) != 4 {
		t.Fatalf("%v, %s", err, out)
	}
	for _, l := range report.Loads {
		if l.Answered == 0 || l.Quantiles["p50"] <= 0 || l.Max < l.Quantiles["p99"] {
			t.Errorf("%s: %+v", l.Name, l)
		}
	}
	out = must.Get(s.run("erase", "user:b-reader-1", "-o", "json"))(t)
	expect.Contains(t, out, "deleted_before", "erase a reader again")
	out = must.Get(s.run("query", "get", "users/user:b-watcher-1/pools?source=following", "-o", "json"))(t)
	expect.Contains(t, out, `"total":0`, "the pool of a watcher")
	out, err = s.run("bench", "--prefix", "c", "--for", "300ms", "--warm-up", "0s", "--timeout", "1m", "--rate", "20",
		"--users", "2", "--pins", "1")
	if err != nil || !strings.Contains(out, "\nvisits ") || !strings.Contains(out, "\npublish ") {
		t.Errorf("as text: %v, %s", err, out)
	}
}
