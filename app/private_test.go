package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The directory contains personal data and secrets.
func TestState_IsNotReadableByOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	start(t, testConfig(dir))
	inside, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(inside) < 5 {
		t.Fatalf("got %q, %v, want the directories of all components", inside, err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "rows", "*", "*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("got %q, %v, want the directories of partitions", parts, err)
	}
	for _, path := range append(append(inside, parts...), dir) {
		info := must.Get(os.Stat(path))(t)
		expect.True(t, !info.IsDir() || info.Mode().Perm() == 0o700, "%s has the mode %v, want 0700", path, info.Mode())
	}
}
