package featurelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Reasons of history, in addition to those of the API. The value is null.
const (
	Retention feature.Reason = "retention" // the topics may have deleted data of the window or of a pin
	Order     feature.Reason = "order"     // the value depends on the order of arrival, which the topics do not have
)

// historyBatch is the number of rows for each of which the topics are read once. It bounds the memory: the actions of so many
// users and pins.
const historyBatch = 100_000

// HistoryFiles are the files of History.
type HistoryFiles struct {
	Rows string // read
	Out  string // written
}

// Filled is the result of History.
type Filled struct {
	Rows    int            `json:"rows"`
	Missing map[string]int `json:"missing"` // values by reason
}

// Text writes the numbers of rows and of missing values.
func (f Filled) Text(w io.Writer) error {
	text := fmt.Sprintf("wrote %d rows\n", f.Rows)
	for _, reason := range slices.Sorted(maps.Keys(f.Missing)) {
		text += fmt.Sprintf("missing values, %s: %d\n", reason, f.Missing[reason])
	}
	_, err := io.WriteString(w, text)
	return err
}

// History adds the values that the features had at the time of each row of a file, and writes the rows to another file. It
// computes them from the actions that had arrived by then. names has names of features, and of feature sets after "@". If
// a row is invalid, History reads no topic and writes no file; the error lists the first bad rows by line.
func History(ctx context.Context, s Setup, names []string, files HistoryFiles) (done Filled, err error) {
	defs, err := chosen(s.Definitions, names)
	if err != nil {
		return done, err
	}
	rows, err := checkRows(files.Rows, defs)
	if err != nil {
		return done, err
	}
	streams, err := s.Streams(ctx)
	if err != nil {
		return done, err
	}
	log, err := topics.NewLog(s.Kafka)
	if err != nil {
		return done, err
	}
	defer log.Close()
	h := &history{defs: defs, log: log, streams: streams, deleted: map[schemas.UserID]bool{}, batch: historyBatch, done: Filled{Missing: map[string]int{}}}
	h.progress = s.Start("compute features", rows)
	defer h.progress.Done()
	err = replaceFile(files.Out, func(out io.Writer) error { return h.run(ctx, files.Rows, out) })
	return h.done, err
}

// replaceFile writes a file. After an error, a previous file is unchanged.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path + ".open")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// chosen returns the definitions with the names, each once.
func chosen(defs []feature.Definition, names []string) (list []feature.Definition, err error) {
	for _, name := range names {
		set, isSet := strings.CutPrefix(name, "@")
		n := len(list)
		for _, d := range defs {
			if !isSet && d.Name == name || isSet && slices.Contains(d.Sets, set) {
				list = append(list, d)
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("features: %q is not defined", name)
		}
	}
	slices.SortFunc(list, func(a, b feature.Definition) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b feature.Definition) bool { return a.Name == b.Name }), nil
}

type history struct {
	defs     []feature.Definition
	log      *topics.Log
	streams  *topics.Streams
	progress topics.Progress
	deleted  map[schemas.UserID]bool
	batch    int // rows
	done     Filled
}

func (h *history) run(ctx context.Context, path string, out io.Writer) error {
	_, err := each(ctx, h.log, h.streams.UsersDeleted, func(d *schemas.DeletedUser, _ *kgo.Record) { h.deleted[d.User] = true })
	if err != nil {
		return err
	}
	r, err := openRows(path, h.defs)
	if err != nil {
		return err
	}
	defer r.Close()
	w := newRowWriter(out, r.header, h.defs)
	for end := false; !end; {
		var batch []historyRow
		for len(batch) < h.batch && !end {
			switch row, err := r.next(); {
			case errors.Is(err, io.EOF):
				end = true
			case err != nil:
				return err
			default:
				batch = append(batch, row)
			}
		}
		if err := h.fill(ctx, w, batch); err != nil {
			return err
		}
		h.progress.Add(len(batch))
	}
	return w.flush()
}

// fill computes and writes some rows.
func (h *history) fill(ctx context.Context, w *rowWriter, batch []historyRow) error {
	if len(batch) == 0 {
		return nil
	}
	p := h.needed(batch)
	if err := p.fill(ctx, h.log, h.streams); err != nil {
		return err
	}
	for _, row := range batch {
		values := make([]feature.Result, len(h.defs))
		for i, d := range h.defs {
			values[i] = h.compute(p, d, row)
			for _, reason := range values[i].Reasons {
				h.done.Missing[string(reason)]++
			}
		}
		if err := w.write(row, values); err != nil {
			return err
		}
	}
	h.done.Rows += len(batch)
	return nil
}

// needed returns an empty past for some rows.
func (h *history) needed(batch []historyRow) *past {
	p := newPast()
	p.after, p.upTo = math.MaxInt64, math.MinInt64
	for _, row := range batch {
		p.after = min(p.after, row.at-schemas.Micros(feature.Kept.Microseconds()))
		p.upTo = max(p.upTo, row.at)
		for _, d := range h.defs {
			p.expect(d.Entity, row.user, row.pin)
			p.byKey = p.byKey || d.Lookup
		}
	}
	return p
}

func (h *history) compute(p *past, d feature.Definition, row historyRow) feature.Result {
	switch {
	case d.Entity != feature.Pin && h.deleted[row.user]:
		return feature.Result{Reasons: []feature.Reason{feature.Erased}}
	case !recomputed(d):
		return feature.Result{Reasons: []feature.Reason{Order}}
	}
	res, sure := p.compute(d, row.user, row.pin, feature.Span{AsOf: row.at, Now: row.at}, cut{row.at, row.at})
	if !sure {
		return feature.Result{Reasons: []feature.Reason{Retention}}
	}
	return res
}

// checkRows counts the rows. It returns an error that lists the first bad ones.
func checkRows(path string, defs []feature.Definition) (rows int, err error) {
	r, err := openRows(path, defs)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var problems []error
	for len(problems) < 10 {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && row.at > schemas.MicrosOf(time.Now()) {
			err = fmt.Errorf("%s:%d: time is in the future", path, r.line)
		}
		if err != nil {
			problems = append(problems, err)
		}
		rows++
	}
	return rows, errors.Join(problems...)
}
