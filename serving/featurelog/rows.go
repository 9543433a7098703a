package featurelog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// historyRow is a user, a pin or both at a time.
type historyRow struct {
	user  schemas.UserID // "": none
	pin   schemas.PinID  // "": none
	at    schemas.Micros
	cells []string // of CSV
	text  []byte   // of JSON lines
}

// rowReader reads CSV with a header, or JSON lines, which begin with {.
type rowReader struct {
	file   *os.File
	defs   []feature.Definition
	header []string // nil: JSON lines
	cells  *csv.Reader
	lines  *bufio.Scanner
	line   int // of the last row
}

// maxLineBytes is the maximum length of a JSON line.
const maxLineBytes = 1 << 20

func openRows(path string, defs []feature.Definition) (*rowReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &rowReader{file: f, defs: defs}
	in := bufio.NewReader(f)
	if first, _ := in.Peek(1); string(first) == "{" {
		r.lines = bufio.NewScanner(in)
		r.lines.Buffer(nil, maxLineBytes)
		return r, nil
	}
	r.cells = csv.NewReader(in)
	if r.header, err = r.cells.Read(); err == nil {
		err = r.checkHeader()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: read the header: %w", path, err), f.Close())
	}
	return r, nil
}

// checkHeader returns an error unless the columns of the result have different names.
func (r *rowReader) checkHeader() error {
	if !slices.Contains(r.header, "time") {
		return errors.New("no column time: want user, pin, time")
	}
	names := slices.Sorted(slices.Values(append(slices.Clone(r.header), added(r.defs)...)))
	for i, name := range names[1:] {
		if names[i] == name {
			return fmt.Errorf("two columns %q", name)
		}
	}
	return nil
}

// added returns the names of the columns that are added to CSV.
func added(defs []feature.Definition) (names []string) {
	for _, d := range defs {
		names = append(names, d.Name)
	}
	return append(names, "missing")
}

func (r *rowReader) Close() error { return r.file.Close() }

// next returns the next row, or io.EOF. Other errors have the line. After an error about the contents of a row, next
// continues with the row after it.
func (r *rowReader) next() (row historyRow, err error) {
	var user, pin, at string
	if r.lines != nil {
		user, pin, at, err = r.nextLine(&row)
	} else {
		user, pin, at, err = r.nextCells(&row)
	}
	if errors.Is(err, io.EOF) {
		return row, err
	}
	if err == nil {
		err = row.parse(user, pin, at, r.defs)
	}
	if err != nil {
		err = fmt.Errorf("%s:%d: %w", r.file.Name(), r.line, err)
	}
	return row, err
}

func (r *rowReader) nextLine(row *historyRow) (user, pin, at string, err error) {
	for r.lines.Scan() {
		r.line++
		if row.text = bytes.TrimSpace(bytes.Clone(r.lines.Bytes())); len(row.text) == 0 {
			continue
		}
		var of struct {
			User, Pin             string
			Time, Values, Missing json.RawMessage
		}
		err := json.Unmarshal(row.text, &of)
		if of.Values != nil || of.Missing != nil {
			err = cmp.Or(err, errors.New("the row has values or missing already"))
		}
		return of.User, of.Pin, strings.Trim(string(of.Time), `"`), err
	}
	return "", "", "", cmp.Or(r.lines.Err(), io.EOF)
}

func (r *rowReader) nextCells(row *historyRow) (user, pin, at string, err error) {
	row.cells, err = r.cells.Read()
	var malformed *csv.ParseError
	if errors.As(err, &malformed) {
		r.line, err = malformed.Line, malformed.Err
	}
	if err != nil {
		return "", "", "", err
	}
	r.line, _ = r.cells.FieldPos(0)
	for i, name := range r.header {
		switch name {
		case "user":
			user = row.cells[i]
		case "pin":
			pin = row.cells[i]
		case "time":
			at = row.cells[i]
		}
	}
	return user, pin, at, nil
}

// parse sets the fields. It returns an error if the row lacks what a definition is evaluated for.
func (row *historyRow) parse(user, pin, at string, defs []feature.Definition) (err error) {
	row.user, row.pin = schemas.UserID(user), schemas.PinID(pin)
	if user != "" {
		_, err = schemas.ParseUserID(user)
	}
	if pin != "" && err == nil {
		_, err = schemas.ParsePinID(pin)
	}
	for _, d := range defs {
		switch {
		case err != nil:
			return err
		case d.Entity != feature.Pin && user == "":
			err = fmt.Errorf("user is empty, but %s is a feature of a %s", d.Name, d.Entity)
		case d.Entity != feature.User && pin == "":
			err = fmt.Errorf("pin is empty, but %s is a feature of a %s", d.Name, d.Entity)
		}
	}
	if micros, notMicros := strconv.ParseInt(at, 10, 64); notMicros == nil {
		row.at = schemas.Micros(micros)
		return err
	}
	t, notTime := time.Parse(time.RFC3339, at)
	row.at = schemas.MicrosOf(t)
	if notTime != nil {
		err = cmp.Or(err, fmt.Errorf("time: %.64q: want a time such as 2026-11-20T10:00:00Z, or microseconds since 1970", at))
	}
	return err
}

// rowWriter writes rows with values, in the format of the rows.
type rowWriter struct {
	defs  []feature.Definition
	cells *csv.Writer // nil: JSON lines
	lines *bufio.Writer
}

func newRowWriter(out io.Writer, header []string, defs []feature.Definition) *rowWriter {
	w := &rowWriter{defs: defs, lines: bufio.NewWriter(out)}
	if header != nil {
		w.cells = csv.NewWriter(w.lines)                                // which it uses as its own buffer
		_ = w.cells.Write(append(slices.Clone(header), added(defs)...)) // flush returns the error
	}
	return w
}

func (w *rowWriter) flush() error {
	if w.cells != nil {
		w.cells.Flush()
	}
	return w.lines.Flush()
}

// write writes a row with the results of the definitions.
func (w *rowWriter) write(row historyRow, results []feature.Result) error {
	values, missing := map[string]feature.Value{}, map[string][]feature.Reason{}
	for i, res := range results {
		values[w.defs[i].Name] = res.Value
		if len(res.Reasons) > 0 {
			missing[w.defs[i].Name] = res.Reasons
		}
	}
	if w.cells == nil {
		added, err := json.Marshal(map[string]any{"values": values, "missing": missing})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.lines, "%s,%s\n", bytes.TrimSuffix(row.text, []byte("}")), added[1:])
		return err
	}
	for _, d := range w.defs {
		cell, err := json.Marshal(values[d.Name])
		if err != nil {
			return err
		}
		row.cells = append(row.cells, strings.TrimPrefix(string(cell), "null"))
	}
	reasons, err := json.Marshal(missing)
	return cmp.Or(err, w.cells.Write(append(row.cells, string(reasons))))
}
