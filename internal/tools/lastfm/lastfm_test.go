package lastfm

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/lastfmtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// tiny returns the set in testdata.
func tiny(t *testing.T) *Dataset {
	t.Helper()
	return must.Get(Read(os.DirFS("testdata/tiny")))(t)
}

func TestEvents_MatchGoldenFile(t *testing.T) {
	var got []byte
	for line := range tiny(t).Events(0) {
		got = append(must.Get(schemas.AppendLine(got, line))(t), '\n')
	}
	golden.Text(t, "testdata/tiny.ndjson", string(got))
}

func TestEvents_AreValid(t *testing.T) {
	d := tiny(t)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	checkEvents(t, d, d.ShiftTo(now), schemas.MicrosOf(now))
}

// checkEvents validates every event at its arrival time, and checks that ids are unique and match the counts.
func checkEvents(t *testing.T, d *Dataset, shift time.Duration, arrival schemas.Micros) {
	t.Helper()
	ids := map[string]bool{}
	n := 0
	for line := range d.Events(shift) {
		n++
		must.OK(t, line.Validate(arrival, schemas.DefaultVerbs()))
		ids[eventOf(line).ID] = true
	}
	c := d.Counts()
	if want := c.Users + c.Follows + c.Pins + c.Actions; n != want || len(ids) != want {
		t.Errorf("%d events with %d ids, want %d", n, len(ids), want)
	}
}

func eventOf(line schemas.Line) schemas.Event {
	return reflect.ValueOf(line.Event).Elem().FieldByName("Event").Interface().(schemas.Event)
}

func TestShiftTo_MovesAllTimesEqually(t *testing.T) {
	d := tiny(t)
	last := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	shift := d.ShiftTo(last)
	var original, latest schemas.Micros
	next, stop := iter.Pull(d.Events(0))
	defer stop()
	for line := range d.Events(shift) {
		unmoved, _ := next()
		original, latest = eventOf(unmoved).Time, eventOf(line).Time
		got := (latest - original).Time().Sub(schemas.Micros(0).Time())
		expect.Equal(t, got, shift, "shift of %s", eventOf(line).ID)
	}
	expect.Equal(t, latest.Time(), last, "time of the last action")
}

func TestShiftTo_WithoutActions(t *testing.T) {
	d := &Dataset{}
	expect.Equal(t, d.ShiftTo(utc(listening).Add(time.Hour)), time.Hour, "shift")
}

// files returns the tiny set with one file replaced.
func files(t *testing.T, name, content string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for _, table := range new(gathered).tables() {
		data := must.Get(os.ReadFile(filepath.Join("testdata/tiny", table.name)))(t)
		out[table.name] = &fstest.MapFile{Data: data}
	}
	out[name] = &fstest.MapFile{Data: []byte(content)}
	return out
}

func TestRead_RejectsInvalidLines(t *testing.T) {
	long := strings.Repeat("x", 600)
	tests := []struct{ name, file, content, want string }{
		{"empty file", "tags.dat", "", "tags.dat:1: empty file"},
		{"another header", "tags.dat", "id\tvalue\n1\tfolk\n", `tags.dat:1: header "id\tvalue", want "tagID\ttagValue"`},
		{"too few fields", "user_friends.dat", "userID\tfriendID\n1\t2\n3\n", "user_friends.dat:3: 1 tab-separated fields, want 2"},
		{"too many fields", "user_friends.dat", "userID\tfriendID\n1\t2\t3\n", "user_friends.dat:2: 3 tab-separated fields"},
		{"blank line", "user_friends.dat", "userID\tfriendID\n1\t2\n\n3\t4\n", "user_friends.dat:3: 1 tab-separated"},
		{"not a number", "user_artists.dat", "userID\tartistID\tweight\n1\tx\t3\n", `user_artists.dat:2: artistID "x"`},
		{"negative", "user_artists.dat", "userID\tartistID\tweight\n1\t2\t-3\n", `user_artists.dat:2: weight "-3"`},
		{"too big", "user_artists.dat", "userID\tartistID\tweight\n1\t2\t2147483648\n", `weight "2147483648": not a number`},
		{"tag without number", "tags.dat", "tagID\ttagValue\nfolk\tfolk\n", `tags.dat:2: tagID "folk"`},
		{"invalid date", "user_taggedartists.dat", "userID\tartistID\ttagID\tday\tmonth\tyear\n1\t2\t3\t30\t2\t2009\n",
			"user_taggedartists.dat:2: day 30, month 2, year 2009: not a valid date"},
		{"too many tags", "user_taggedartists.dat", manyTags(65), "user_taggedartists.dat:66: user 1, artist 2: more than 64 tags"},
		{"duplicate artist", "artists.dat", "id\tname\turl\tpictureURL\n1\ta\tb\t\n1\ta\tb\t\n", "artists.dat:3: duplicate artist 1"},
		{"long name", "artists.dat", "id\tname\turl\tpictureURL\n1\t" + long + "\tb\t\n", "artists.dat:2: name: 600 bytes"},
		{"control character", "artists.dat", "id\tname\turl\tpictureURL\n1\ta\x01\tb\t\n", `artists.dat:2: name "a\x01": control`},
		{"not UTF-8", "artists.dat", "id\tname\turl\tpictureURL\n1\t\xff\tb\t\n", "artists.dat:2: not UTF-8"},
		{"endless line", "tags.dat", "tagID\ttagValue\n1\t" + strings.Repeat("x", maxLineBytes), "tags.dat:2: bufio.Scanner: token too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expect.Error(t, expect.ErrorOf(Read(files(t, test.file, test.content))), test.want, "Read")
		})
	}
}

// The day of a date can overflow 32 bits: farDate is 2^32 days after 2008-01-01.
func TestRead_CountsFarDatesAsUndated(t *testing.T) {
	for _, date := range []string{"31\t7\t2005", "1\t6\t2011", "1\t1\t0", farDate, "31\t12\t2147483647"} {
		d := must.Get(Read(files(t, "user_taggedartists.dat", "userID\tartistID\ttagID\tday\tmonth\tyear\n1\t2\t3\t"+date+"\n")))(t)
		if got := d.Counts(); got.Pins != 0 || got.Skipped.Undated != 1 {
			t.Errorf("%q: got %+v, want no pin and one undated row", date, got)
		}
	}
}

const farDate = "20\t1\t11761229"

func manyTags(n int) string {
	var b strings.Builder
	b.WriteString("userID\tartistID\ttagID\tday\tmonth\tyear\n")
	for i := range n {
		fmt.Fprintf(&b, "1\t2\t%d\t1\t1\t2009\n", i)
	}
	return b.String()
}

func TestRead_ReportsEveryMissingFile(t *testing.T) {
	_, err := Read(fstest.MapFS{})
	for _, table := range new(gathered).tables() {
		expect.Error(t, err, table.name, "Read")
	}
}

func TestRead_AcceptsCRLF(t *testing.T) {
	windows := files(t, "tags.dat", "tagID\ttagValue\r\n1\tfolk\r\n")
	must.Get(Read(windows))(t)
}

func TestRead_AcceptsRealSet(t *testing.T) {
	d := must.Get(Read(os.DirFS(lastfmtest.Real(t, "../../.."))))(t)
	want := Counts{Users: 1892, Follows: 30_954, Pins: 71_062, Actions: 84_838, Skipped: Skipped{Undated: 5, NoPin: 7_996}}
	expect.Equal(t, d.Counts(), want, "counts")
}

func TestMostFrequent_BreaksTiesBySmallerID(t *testing.T) {
	for _, c := range []struct {
		counts map[int32]int
		want   []int32
	}{
		{nil, nil},
		{map[int32]int{7: 1}, []int32{7}},
		{map[int32]int{1: 1, 2: 9, 3: 5, 4: 7}, []int32{2, 4, 3}},
		{map[int32]int{9: 2, 4: 2, 6: 2, 1: 1}, []int32{4, 6, 9}}, // ties: the smaller id
	} {
		expect.NoDiff(t, mostFrequent(c.counts, 3), c.want, "most frequent of %v", c.counts)
	}
}

// The generated files have rows of each kind, and are deterministic.
func TestRead_AcceptsGeneratedFiles(t *testing.T) {
	for _, scale := range []float64{0.001, 0.03} {
		var counts [2]Counts
		for i := range counts {
			d := must.Get(Read(os.DirFS(lastfmtest.Write(t, scale))))(t)
			counts[i] = d.Counts()
		}
		if c := counts[0]; c != counts[1] || c.Users == 0 || c.Follows == 0 || c.Pins == 0 || c.Actions == 0 || c.Skipped.Undated != 2 {
			t.Errorf("scale %g: got %+v and %+v, want equal counts above 0", scale, c, counts[1])
		}
	}
}
