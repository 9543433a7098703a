package feature

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/logtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
)

// The file changes while the process runs. Each valid change is in effect a moment later. For an invalid change, every
// mistake is logged once, and the previous definitions stay.
func TestReloader_ReloadsChangedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "features.yaml")
		write := func(text string) {
			t.Helper()
			must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		}
		const one, two = "features:\n- {name: one, entity: user, aggregate: count}\n", "features:\n- {name: two, entity: user, aggregate: count}\n"
		write(one)
		var log logtest.Log
		s, _ := serviceOf{store: empty{}}.start(t)
		metrics := must.Get(NewMetrics(prometheus.NewRegistry()))(t)
		r := NewReloader(Config{ReloadInterval: time.Second}, path, s, metrics, slog.New(slog.NewTextHandler(&log, nil)))
		stop := topicstest.Run(t, r.Run)
		steps := []struct {
			do   func()
			want string   // name of the only feature
			says []string // log messages within several seconds, each once
		}{
			{func() {}, "one", nil},
			{func() { write(two) }, "two", []string{"reloaded feature definitions"}},
			{func() { write(two + "- {name: Three, entity: user}\n- {entity: user, aggregate: counts}\n") }, "two", []string{`name \"Three\"`, `aggregate \"counts\"`}},
			{func() { _ = os.Remove(path) }, "two", []string{"no such file"}},
			{func() { write("") }, "two", []string{"no features"}},
			{func() { write(two) }, "two", []string{"reloaded feature definitions"}},
			{func() { write(one) }, "one", []string{"reloaded feature definitions"}},
		}
		for i, step := range steps {
			log.Take()
			step.do()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if defs := s.Definitions(); len(defs) != 1 || defs[0].Name != step.want {
				t.Errorf("step %d: got %v, want only %s", i, defs, step.want)
			}
			logged := log.Take()
			for _, says := range step.says {
				expect.Equal(t, strings.Count(logged, says), 1, "step %d: lines with %q in\n%s", i, says, logged)
			}
		}
		must.OK(t, stop())
	})
}

func TestReplace_RejectsDuplicateNames(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	before := len(s.Definitions())
	if err := s.Replace([]Definition{{Name: "a"}, {Name: "a"}}); err == nil || len(s.Definitions()) != before {
		t.Errorf("got %v and %d definitions, want an error and %d", err, len(s.Definitions()), before)
	}
}
