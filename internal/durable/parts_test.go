package durable

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A process that is killed while it writes a file leaves the other files as they are, and nothing else after the next start.
func TestParts_ListOnlyCompleteFiles(t *testing.T) {
	p := Parts{Dir: t.TempDir(), Key: "day", Ext: ".parquet"}
	write := func(day string, part Part, err error) error {
		return p.Write(day, part, func(out io.Writer) error {
			_, failed := io.WriteString(out, "content")
			return errors.Join(failed, err)
		})
	}
	must.OK(t, write("2026-11-20", Part{1, 5, 9}, nil))
	must.OK(t, write("2026-11-21", Part{0, 3, 3}, nil))
	must.OK(t, write("2026-11-20", Part{1, 10, 19}, nil))
	broken := errors.New("broken")
	expect.Is(t, write("2026-11-20", Part{1, 20, 29}, broken), broken, "error of a writer")
	day := filepath.Join(p.Dir, "day=2026-11-20")
	killed := filepath.Join(day, "part-01-000000000020-000000000029.parquet.tmp")
	must.OK(t, os.WriteFile(killed, []byte("cont"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(day, "part-1-20-29.parquet"), nil, 0o600)) // of another program
	must.OK(t, must.Get(p.Lock())(t).Unlock())
	expect.Is(t, expect.ErrorOf(os.Stat(killed)), os.ErrNotExist, "Stat")
	paths, next, err := p.List()
	want := []string{
		filepath.Join(day, "part-01-000000000005-000000000009.parquet"), filepath.Join(day, "part-01-000000000010-000000000019.parquet"),
		filepath.Join(p.Dir, "day=2026-11-21", "part-00-000000000003-000000000003.parquet"),
	}
	if err != nil || !slices.Equal(paths, want) || !maps.Equal(next, map[int32]int64{0: 4, 1: 20}) {
		t.Errorf("got %q, %v, %v, want %q", paths, next, err, want)
	}
}

func TestParts_RejectSecondProcess(t *testing.T) {
	p := Parts{Dir: filepath.Join(t.TempDir(), "new")}
	lock := must.Get(p.Lock())(t)
	expect.Error(t, expect.ErrorOf(p.Lock()), "another process", "Lock")
	must.OK(t, lock.Unlock())
	must.OK(t, must.Get(p.Lock())(t).Unlock())
}
