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
	row     func(t table, fields []string) error // processes one line
}

func (g *gathered) tables() []table {
	return []table{
		{"artists.dat", []string{"id", "name", "url", "pictureURL"}, g.artist},
		{"tags.dat", []string{"tagID", "tagValue"}, tag},
		{"user_taggedartists.dat", []string{"userID", "artistID", "tagID", "day", "month", "year"}, g.tagging},
		{"user_friends.dat", []string{"userID", "friendID"}, g.friendship},
		{"user_artists.dat", []string{"userID", "artistID", "weight"}, g.listen},
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
			err = t.row(t, fields)
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

// numbers parses fields as numbers from 0 to 2^31-1.
func (t table) numbers(fields []string) ([]int32, error) {
	all := make([]int32, len(fields))
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%s %q: not a number from 0 to %d", t.columns[i], field, math.MaxInt32)
		}
		all[i] = int32(n)
	}
	return all, nil
}

func (g *gathered) artist(t table, fields []string) error {
	id, err := t.numbers(fields[:1])
	if err != nil {
		return err
	}
	if _, known := g.artists[id[0]]; known {
		return fmt.Errorf("duplicate artist %d", id[0])
	}
	if err := checkText(t.columns[1], fields[1], schemas.MaxTitleBytes); err != nil {
		return err
	}
	if err := checkText(t.columns[2], fields[2], schemas.MaxLinkBytes); err != nil {
		return err
	}
	g.artists[id[0]] = artist{name: fields[1], link: fields[2]}
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

// tag checks a line of the tags. It ignores the names of tags: the number identifies an interest.
func tag(t table, fields []string) error {
	_, err := t.numbers(fields[:1])
	return err
}

func (g *gathered) tagging(t table, fields []string) error {
	n, err := t.numbers(fields)
	if err != nil {
		return err
	}
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

func (g *gathered) friendship(t table, fields []string) error {
	n, err := t.numbers(fields)
	if err != nil {
		return err
	}
	g.users[n[0]], g.users[n[1]] = true, true
	g.friends = append(g.friends, friendship{user: n[0], friend: n[1]})
	return nil
}

func (g *gathered) listen(t table, fields []string) error {
	n, err := t.numbers(fields)
	if err != nil {
		return err
	}
	g.users[n[0]] = true
	row := int32(len(g.listens))
	g.listens = append(g.listens, listen{row: row, user: n[0], artist: n[1], weight: n[2]})
	return nil
}
