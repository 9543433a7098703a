package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// After a cut-over, an erasure writes no tombstones to the previous changelog. The command counts the rows that remain
// there, until prune deletes the topic.
func TestErase_CountsRowsOfRetiredGenerations(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.publish(lifeOfAUser(time.Now())...)
	s.generate("all")
	eventually.True(t, "the retired generation is stopped", func() bool {
		_, err := os.Stat(s.localRows(1))
		return len(s.generations.running()) == 1 && errors.Is(err, fs.ErrNotExist)
	})
	erase := func() (left []string) {
		t.Helper()
		for _, r := range runJSON[ops.Erased](s, "erase", erased).Remains {
			if r.Where == topics.TableOf(topics.Pools) {
				left = append(left, r.What)
			}
		}
		return left
	}
	if left := erase(); len(left) != 1 || strings.HasPrefix(left[0], "0 ") {
		t.Errorf("of the changelog of the retired generation: %q, want a number of rows", left)
	}
	must.Get(os.Stat(s.localRows(2)))(t)
	s.prune()
	expect.Equal(t, len(erase()), 0, "topics with the user, when the changelog of the retired generation is deleted")
	must.Get(s.run("topics", "verify"))(t)
	s.publish(event(time.Now(), "after", "follows", "user:reader", "follow", "user:author-2", nil))
	expect.Equal(t, len(must.Get(s.store.Edges(t.Context(), "user:reader", []schemas.ID{"user:author-2"}))(t)), 1, "edges after prune")
}

// localRows returns the directory of a generation of the pools.
func (s *started) localRows(number int) string {
	return filepath.Join(s.cfg.below(s.cfg.Rows.Dir), topics.TableOf(generation.Name(topics.Pools, number)))
}

// A process that was stopped during the cut-over removes the directory of the previous generation when it starts.
func TestPoolGenerations_RemovesRetiredLocalRowsAtStart(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	s := start(t, cfg)
	retired, active := s.localRows(7), s.localRows(1)
	s.stop()
	must.OK(t, os.MkdirAll(filepath.Join(retired, "0"), 0o750))
	s = start(t, cfg)
	expect.Is(t, expect.ErrorOf(os.Stat(retired)), fs.ErrNotExist, "%s", retired)
	must.Get(os.Stat(active))(t)
}

// prune deletes the topics of retired generations after the process has left them.
func (s *started) prune() {
	s.t.Helper()
	eventually.True(s.t, "no process is a member of the retired generation", func() bool {
		out, err := s.run("topics", "prune")
		if err == nil && !strings.Contains(out, topics.TableOf(topics.Pools)) || err != nil && !strings.Contains(err.Error(), "members") {
			s.t.Fatalf("topics prune: %v: %s", err, out)
		}
		return err == nil
	})
}
