//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestKeepFilesPrivate(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	dir := t.TempDir()
	keepFilesPrivate()
	file, sub := filepath.Join(dir, "file"), filepath.Join(dir, "dir")
	must.OK(t, os.WriteFile(file, nil, 0o666))
	must.OK(t, os.Mkdir(sub, 0o777))
	for path, want := range map[string]os.FileMode{file: 0o600, sub: 0o700} {
		expect.Equal(t, must.Get(os.Stat(path))(t).Mode().Perm(), want, "mode of %s", path)
	}
}
