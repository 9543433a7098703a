package lastfm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// Files that Read accepts must result in valid events.
func FuzzRead(f *testing.F) {
	names := []string{"artists.dat", "tags.dat", "user_taggedartists.dat", "user_friends.dat", "user_artists.dat"}
	files := make([][]byte, len(names))
	for i, name := range names {
		text := must.Get(os.ReadFile(filepath.Join("testdata", "tiny", name)))(f)
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
		expect.AtLeast(t, d.Counts().Skipped.Undated, ofOtherYears(t, tagged), "undated rows: those outside the years of the set")
		now := time.Now() // per input: a fuzzing worker runs longer than the maximum clock skew of events
		arrival, shift := schemas.MicrosOf(now), d.ShiftTo(now.Add(-time.Minute))
		for l := range d.Pins(shift) {
			expect.Error(t, l.Validate(arrival, verbs), "", "pin")
		}
		for l := range d.Actions(shift) {
			expect.Error(t, l.Validate(arrival, verbs), "", "action")
		}
	})
}

// ofOtherYears counts the rows of a valid tags file with years outside the set.
func ofOtherYears(t *testing.T, tagged []byte) (n int) {
	t.Helper()
	_, rows, _ := strings.Cut(string(tagged), "\n")
	for row := range strings.Lines(rows) {
		text := strings.TrimRight(row[strings.LastIndexByte(row, '\t')+1:], "\r\n")
		year := must.Get(strconv.Atoi(text))(t)
		if year < 2005 || year > 2011 {
			n++
		}
	}
	return n
}
