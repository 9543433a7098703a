package export

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// content returns the names and contents of the files.
func (f folder) content(t *testing.T) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, path := range must.Get(filepath.Glob(filepath.Join(string(f), "day=*", "*")))(t) {
		got[strings.TrimPrefix(path, string(f)+"/")] = string(must.Get(os.ReadFile(path))(t))
	}
	return got
}

// writing returns a function that writes a text, and returns an error after it.
func writing(text string, err error) func(io.Writer) error {
	return func(out io.Writer) error {
		_, failed := io.WriteString(out, text)
		return errors.Join(failed, err)
	}
}

// A process that is killed while it writes a file leaves the other files as they are, and nothing else after the next start.
func TestRemoveIncomplete_KeepsCompleteFiles(t *testing.T) {
	f := folder(t.TempDir())
	must.OK(t, f.write("2026-11-20", extent{partition: 1, first: 5, last: 9}, writing("whole", nil)))
	killed := errors.New("killed")
	if err := f.write("2026-11-20", extent{partition: 1, first: 10, last: 19}, writing("ha", killed)); !errors.Is(err, killed) {
		t.Fatalf("got %v, want %v", err, killed)
	}
	must.OK(t, f.removeIncomplete())
	if diff := gocmp.Diff(map[string]string{"day=2026-11-20/part-01-000000000005-000000000009.parquet": "whole"}, f.content(t)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if at := written("visit-log", must.Get(f.list(suffix))(t))["visit-log"]; at[1].Next != 10 {
		t.Errorf("continues at %v, want 10", at)
	}
}

func TestLock_RejectsSecondExport(t *testing.T) {
	f := folder(filepath.Join(t.TempDir(), "new"))
	lock := must.Get(f.lock())(t)
	if _, err := f.lock(); err == nil || !strings.Contains(err.Error(), "another export") {
		t.Errorf("got %v", err)
	}
	must.OK(t, lock.Unlock())
	must.OK(t, must.Get(f.lock())(t).Unlock())
}

func TestParseLabels(t *testing.T) {
	allowed := schemas.DefaultVerbs()
	got, err := ParseLabels([]string{"save=24h", "hide=90m"}, allowed)
	if want := (Labels{schemas.Hide: 90 * time.Minute, schemas.Save: 24 * time.Hour}); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for text, want := range map[string]string{
		"":                  "label: want at least one",
		"save":              `label: "save": want VERB=WINDOW`,
		"like=1h":           `label: "like=1h": unknown verb: want one of [click closeup hide report save view]`,
		"save=0s":           "window: want a duration above 0, at most 168h0m0s",
		"save=169h":         "window: want a duration above 0",
		"save=day":          "window: want a duration above 0",
		"save=1h save=2h":   "another window already",
		"save=1h save=1h":   "another window already",
		"save=1h view=-24h": "window: want",
	} {
		if _, err := ParseLabels(strings.Fields(text), allowed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
