package lastfm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// FuzzRead reads arbitrary files. Files that Read accepts make valid events.
func FuzzRead(f *testing.F) {
	names := []string{"artists.dat", "tags.dat", "user_taggedartists.dat", "user_friends.dat", "user_artists.dat"}
	files := make([][]byte, len(names))
	for i, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "tiny", name))
		must.OK(f, err)
		files[i] = text
	}
	f.Add(files[0], files[1], files[2], files[3], files[4])
	f.Add([]byte("id\tname\turl\tpictureURL\n1\t\t\t\n"), files[1], files[2], files[3], files[4])
	f.Add(files[0], files[1], []byte("userID\tartistID\ttagID\tday\tmonth\tyear\n1\t2\t3\t"+farDate+"\n"), files[3], files[4])
	verbs := schemas.DefaultVerbs()
	f.Fuzz(func(t *testing.T, artists, tags, tagged, friends, listened []byte) {
		set := fstest.MapFS{}
		for i, text := range [][]byte{artists, tags, tagged, friends, listened} {
			set[names[i]] = &fstest.MapFile{Data: text}
		}
		d, err := Read(set)
		if err != nil {
			return
		}
		if got, want := d.Counts().Skipped.Undated, ofOtherYears(t, tagged); got < want {
			t.Errorf("%d rows are undated, and %d are of years that the set cannot have", got, want)
		}
		now := time.Now() // per input: a fuzzing worker runs for longer than events may be ahead
		arrival, shift := schemas.MicrosOf(now), d.ShiftTo(now.Add(-time.Minute))
		for l := range d.Pins(shift) {
			if err := l.Validate(arrival, verbs); err != nil {
				t.Errorf("a pin that would be refused: %v", err)
			}
		}
		for l := range d.Actions(shift) {
			if err := l.Validate(arrival, verbs); err != nil {
				t.Errorf("an action that would be refused: %v", err)
			}
		}
	})
}

// ofOtherYears counts the rows of a valid tags file whose year the set cannot have.
func ofOtherYears(t *testing.T, tagged []byte) (n int) {
	t.Helper()
	_, rows, _ := strings.Cut(string(tagged), "\n")
	for row := range strings.Lines(rows) {
		text := strings.TrimRight(row[strings.LastIndexByte(row, '\t')+1:], "\r\n")
		year, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("a row was taken whose year is %q", text)
		}
		if year < 2005 || year > 2011 {
			n++
		}
	}
	return n
}
