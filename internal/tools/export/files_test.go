package export

import (
	"io"
	"os"
	"path/filepath"
	"slices"
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

func (f folder) temp(t *testing.T, day string, batch extent, text string) string {
	t.Helper()
	return must.Get(f.create(day, batch, func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	}))(t)
}

// A process that was killed before the first rename has written nothing. After it, the batch is complete.
func TestRecover_CompletesOrDropsBatch(t *testing.T) {
	f, batch := folder(t.TempDir()), extent{partition: 3, first: 120, last: 4711}
	f.temp(t, "2026-11-20", batch, "a")
	must.OK(t, f.recover())
	if diff := gocmp.Diff(map[string]string{}, f.content(t)); diff != "" {
		t.Errorf("killed before the first rename (-want +got):\n%s", diff)
	}
	temps := []string{f.temp(t, "2026-11-20", batch, "a"), f.temp(t, "2026-11-21", batch, "b")}
	must.OK(t, renameAll(temps[:1]))
	must.OK(t, f.recover())
	want := map[string]string{
		"day=2026-11-20/part-03-000000000120-000000004711.parquet": "a",
		"day=2026-11-21/part-03-000000000120-000000004711.parquet": "b",
	}
	if diff := gocmp.Diff(want, f.content(t)); diff != "" {
		t.Errorf("killed after the first rename (-want +got):\n%s", diff)
	}
	if next := must.Get(f.next())(t); next[3] != 4712 {
		t.Errorf("continues at %v, want 4712", next)
	}
}

// A half-written file does not replace an open file of the same batch.
func TestRecover_DropsOpenBatch(t *testing.T) {
	f, batch := folder(t.TempDir()), extent{partition: 1, first: 5, last: 9, open: true}
	must.OK(t, f.commit(batch, []string{f.temp(t, "2026-11-20", batch, "whole")}))
	f.temp(t, "2026-11-20", batch, "ha")
	must.OK(t, f.recover())
	if diff := gocmp.Diff(map[string]string{"day=2026-11-20/part-01-000000000005-000000000009-open.parquet": "whole"}, f.content(t)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if next := must.Get(f.next())(t); next[1] != 0 {
		t.Errorf("continues at %v, want the start of the open batch", next)
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
	if want := []Label{{schemas.Hide, 90 * time.Minute}, {schemas.Save, 24 * time.Hour}}; err != nil || !slices.Equal(got, want) {
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
