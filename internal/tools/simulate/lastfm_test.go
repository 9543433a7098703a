package simulate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
)

func TestLikeLastfmIsRead(t *testing.T) {
	for _, scale := range []float64{0, 0.001, 0.05} {
		dir := t.TempDir()
		if err := LikeLastfm(scale, 7).Write(dir); err != nil {
			t.Fatal(err)
		}
		d, err := lastfm.Read(os.DirFS(dir))
		if err != nil {
			t.Fatalf("scale %g: %v", scale, err)
		}
		c := d.Counts()
		if c.Users == 0 || c.Follows == 0 || c.Skipped.Undated == 0 || scale > 0 && (c.Pins == 0 || c.Actions == 0) {
			t.Errorf("scale %g: %+v, want some of all", scale, c)
		}
	}
}

func TestLikeLastfmIsTheSameForASeed(t *testing.T) {
	one, again, other := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, seed := range map[string]uint64{one: 1, again: 1, other: 2} {
		if err := LikeLastfm(0.01, seed).Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(one)
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		a, b := read(t, one, f.Name()), read(t, again, f.Name())
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs for the same seed", f.Name())
		}
	}
	if bytes.Equal(read(t, one, "user_artists.dat"), read(t, other, "user_artists.dat")) {
		t.Error("another seed is the same set")
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLikeLastfmNeedsADirectory(t *testing.T) {
	if err := LikeLastfm(0, 1).Write(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("wrote into a directory that is not there")
	}
}
