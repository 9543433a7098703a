package lastfm

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/smartfeed/smartfeed/schemas"
)

// maxLineBytes bounds a line of a file. The longest line of the real files has 400 bytes.
const maxLineBytes = 64 << 10

// table is one of the files: tab-separated UTF-8 with a header line.
type table struct {
	name    string
	columns []string
	numbers int                                         // how many of the first columns are numbers
	row     func(numbers []int32, texts []string) error // processes one line; nil: lines are only checked
}

func (g *gathered) tables() []table {
	return []table{
		{"artists.dat", []string{"id", "name", "url", "pictureURL"}, 1, g.artist},
		{"tags.dat", []string{"tagID", "tagValue"}, 1, nil}, // the number identifies an interest
		{"user_taggedartists.dat", []string{"userID", "artistID", "tagID", "day", "month", "year"}, 6, g.tagging},
		{"user_friends.dat", []string{"userID", "friendID"}, 2, g.friendship},
		{"user_artists.dat", []string{"userID", "artistID", "weight"}, 3, g.listen},
	}
}

// Read reads the five files of the set from fsys. It reports missing files, and the first invalid line of each file, with
// the file's name and the line's number. The problems of all files are joined.
func Read(fsys fs.FS) (*Dataset, error) {
	g := &gathered{
		artists: map[int32]artist{},
		users:   map[int32]bool{},
		tagged:  map[int32]map[int32]int{},
		pins:    map[pinKey]*pin{},
	}
	var problems []error
	for _, t := range g.tables() {
		problems = append(problems, t.read(fsys))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return g.dataset(), nil
}

// read checks the header, which must name the columns, and processes each line after it.
func (t table) read(fsys fs.FS) error {
	f, err := fsys.Open(t.name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLineBytes)
	n := 0
	for ; lines.Scan(); n++ {
		fields, err := t.split(lines.Text())
		switch {
		case err != nil:
		case n == 0:
			err = t.header(fields)
		default:
			err = t.process(fields)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", t.name, n+1, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", t.name, n+1, err)
	}
	if n == 0 {
		return fmt.Errorf("%s:1: empty file, want the header %q", t.name, strings.Join(t.columns, "\t"))
	}
	return nil
}

func (t table) split(line string) ([]string, error) {
	if !utf8.ValidString(line) {
		return nil, errors.New("not UTF-8")
	}
	fields := strings.Split(line, "\t")
	if len(fields) != len(t.columns) {
		return nil, fmt.Errorf("%d tab-separated fields, want %d: %s", len(fields), len(t.columns),
			strings.Join(t.columns, ", "))
	}
	return fields, nil
}

func (t table) header(fields []string) error {
	if !slices.Equal(fields, t.columns) {
		return fmt.Errorf("header %q, want %q", strings.Join(fields, "\t"), strings.Join(t.columns, "\t"))
	}
	return nil
}

// process parses the numbers of a line, from 0 to 2^31-1, and processes the line.
func (t table) process(fields []string) error {
	all := make([]int32, t.numbers)
	for i, field := range fields[:t.numbers] {
		n, err := strconv.ParseUint(field, 10, 31)
		if err != nil {
			return fmt.Errorf("%s %q: not a number from 0 to %d", t.columns[i], field, math.MaxInt32)
		}
		all[i] = int32(n)
	}
	if t.row == nil {
		return nil
	}
	return t.row(all, fields[t.numbers:])
}

func (g *gathered) artist(numbers []int32, texts []string) error {
	id, name, link := numbers[0], texts[0], texts[1]
	if _, known := g.artists[id]; known {
		return fmt.Errorf("duplicate artist %d", id)
	}
	if err := checkText("name", name, schemas.MaxTitleBytes); err != nil {
		return err
	}
	if err := checkText("url", link, schemas.MaxLinkBytes); err != nil {
		return err
	}
	g.artists[id] = artist{name, link}
	return nil
}

// checkText checks a name or link against the bounds of events.
func checkText(column, text string, maxBytes int) error {
	if len(text) > maxBytes {
		return fmt.Errorf("%s: %d bytes: want at most %d", column, len(text), maxBytes)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%s %q: control character", column, text)
	}
	return nil
}

func (g *gathered) tagging(n []int32, _ []string) error {
	user, artist, tag := n[0], n[1], n[2]
	day, err := calendarDay(n[5], n[4], n[3])
	if err != nil {
		return err
	}
	g.users[user] = true
	if g.tagged[user] == nil {
		g.tagged[user] = map[int32]int{}
	}
	g.tagged[user][tag]++
	if day < firstDay || day > lastDay {
		g.undated++
		return nil
	}
	return g.pin(pinKey{user, artist}, int32(day), tag)
}

// pin adds a tag with its day to a pin.
func (g *gathered) pin(key pinKey, day, tag int32) error {
	p := g.pins[key]
	if p == nil {
		p = &pin{pinKey: key, day: day}
		g.pins[key] = p
	}
	p.day = min(p.day, day)
	if slices.Contains(p.tags, tag) {
		return nil
	}
	if p.tags = append(p.tags, tag); len(p.tags) > schemas.MaxInterests {
		return fmt.Errorf("user %d, artist %d: more than %d tags", key.user, key.artist, schemas.MaxInterests)
	}
	return nil
}

// calendarDay returns the days since 1970-01-01. The result can exceed 32 bits, because the files can contain any year.
func calendarDay(year, month, day int32) (int64, error) {
	t := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if t.Year() != int(year) || t.Month() != time.Month(month) || t.Day() != int(day) {
		return 0, fmt.Errorf("day %d, month %d, year %d: not a valid date", day, month, year)
	}
	return t.Unix() / secondsADay, nil
}

func (g *gathered) friendship(n []int32, _ []string) error {
	g.users[n[0]], g.users[n[1]] = true, true
	g.friends = append(g.friends, friendship{user: n[0], friend: n[1]})
	return nil
}

func (g *gathered) listen(n []int32, _ []string) error {
	g.users[n[0]] = true
	row := int32(len(g.listens))
	g.listens = append(g.listens, listen{row: row, user: n[0], artist: n[1], weight: n[2]})
	return nil
}
