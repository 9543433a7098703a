package durable

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestReplace_KeepsThePreviousFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	must.OK(t, os.WriteFile(path, []byte("before"), 0o600))
	if err := Replace(path, func(w io.Writer) error {
		must.Get(w.Write([]byte("half")))(t)
		return os.ErrDeadlineExceeded
	}); err == nil {
		t.Error("no error")
	}
	expect.Equal(t, string(must.Get(os.ReadFile(path))(t)), "before", "file before")
	must.OK(t, Replace(path, func(w io.Writer) error { _, err := w.Write([]byte("after")); return err }))
	expect.Equal(t, string(must.Get(os.ReadFile(path))(t)), "after", "file after")
	expect.Equal(t, len(must.Get(os.ReadDir(filepath.Dir(path)))(t)), 1, "files in the directory")
}
