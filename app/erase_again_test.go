package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// replaceDir replaces a directory with a copy of another.
func replaceDir(t *testing.T, dir, with string) {
	t.Helper()
	must.OK(t, os.RemoveAll(dir))
	must.OK(t, os.CopyFS(dir, os.DirFS(with)))
}

// eraseUsersAgain runs the command and returns its result.
func (s *started) eraseUsersAgain(args ...string) ops.ErasedAgain {
	s.t.Helper()
	return runJSON[ops.ErasedAgain](s, append([]string{"erase", "reapply", "--timeout", processingTimeout}, args...)...)
}

// A copy of the directory from before an erasure restores the user. "erase reapply" with the separate list of erased users
// erases them again.
func TestEraseAgain_AfterRestoreOfOlderCopy(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	cfg := testConfig(filepath.Join(root, "live"))
	backup, list := filepath.Join(root, "backup"), filepath.Join(root, "erased-users.txt")

	s := start(t, cfg)
	s.publish(lifeOfAUser(time.Now())...)
	s.api().show() // the visits put the pins into materialized feeds
	s.stop()
	replaceDir(t, backup, cfg.Dir)

	s = start(t, cfg)
	must.Get(s.run("erase", erased))(t)
	out, err := s.run("erase", "list")
	if err != nil || !strings.HasPrefix(out, erased+" ") || strings.Count(out, "\n") != 1 {
		t.Fatalf("erase list: %v: %q", err, out)
	}
	must.OK(t, os.WriteFile(list, []byte(out), 0o600))
	s.stop()
	replaceDir(t, cfg.Dir, backup)

	s = start(t, cfg)
	must.AtLeast(t, len(s.api().show()), 10, "data to erase in the restored copy")
	done := s.eraseUsersAgain(list)
	expect.Equal(t, [2]int{done.Users, done.Restored}, [2]int{1, 1}, "users erased again, and restored before")
	s.api().checkErased()
	for _, args := range [][]string{{list}, nil} { // without a file: the deleted users on the brokers
		done := s.eraseUsersAgain(args...)
		expect.Equal(t, [2]int{done.Users, done.Restored}, [2]int{1, 0}, "users erased again by %v, and restored before", args)
	}
	s.api().checkErased()
}
