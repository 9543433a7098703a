package featurelog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Reasons of history, in addition to those of the API. The value is null.
const (
	Retention feature.Reason = "retention" // the topics may have deleted data of the window or of a pin
	Order     feature.Reason = "order"     // the value depends on the order of arrival, which the topics do not have
)

const (
	// historyBatch is the number of rows for each of which the topics are read once. It bounds the memory: the actions of so
	// many users and pins.
	historyBatch = 100_000
	maxRowBytes  = 1 << 20
)

// HistoryFiles are the files of History.
type HistoryFiles struct {
	Rows string // read
	Out  string // written
}

// History adds the values that features had at the time of each row of a file, and writes the rows to another file. It
// computes them from the records that had arrived by then. names has names of features, and of feature sets after "@". It
// returns the number of rows. If a row is invalid, History reads no topic and writes no file; the error has the line.
func History(ctx context.Context, s Setup, names []string, files HistoryFiles) (rows int, err error) {
	h := &history{batch: historyBatch, deleted: map[schemas.UserID]bool{}}
	if h.defs, err = chosen(s.Definitions, names); err != nil {
		return 0, err
	}
	check := func(batch []historyRow) error { rows += len(batch); return nil }
	if err = h.batches(files.Rows, check); err != nil {
		return 0, err
	}
	if h.streams, err = s.Streams(ctx); err != nil {
		return 0, err
	}
	if h.log, err = topics.NewLog(s.Kafka); err != nil {
		return 0, err
	}
	defer h.log.Close()
	progress := s.Start("compute features", rows)
	defer progress.Done()
	return rows, durable.Replace(files.Out, func(out io.Writer) error { return h.run(ctx, files.Rows, out, progress) })
}

// chosen returns the definitions with the names.
func chosen(defs []feature.Definition, names []string) (list []feature.Definition, err error) {
	sets := feature.Sets(defs)
	for _, name := range names {
		members := []string{name}
		if set, isSet := strings.CutPrefix(name, "@"); isSet {
			members = sets[set]
		}
		n := len(list)
		for _, d := range defs {
			if slices.Contains(members, d.Name) {
				list = append(list, d)
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("features: %q is not defined", name)
		}
	}
	return list, nil
}

// historyRow is a user, a pin or both at a time.
type historyRow struct {
	User schemas.UserID
	Pin  schemas.PinID
	Time time.Time

	Values, Missing json.RawMessage // must be missing

	text []byte // the row
	at   schemas.Micros
}

// parse reads a row. It returns an error if the row lacks what a definition is evaluated for.
func (row *historyRow) parse(text []byte, defs []feature.Definition) error {
	row.text = bytes.Clone(text)
	if err := json.Unmarshal(text, row); err != nil {
		return err
	}
	row.at = schemas.MicrosOf(row.Time)
	if row.Values != nil || row.Missing != nil {
		return errors.New("the row has values or missing already")
	}
	if row.Time.IsZero() || row.Time.After(time.Now()) {
		return fmt.Errorf("time: %s: want a time in the past", row.Time.Format(time.RFC3339))
	}
	for _, d := range defs {
		_, err := schemas.ParseUserID(string(row.User))
		if d.Entity == feature.Pin {
			err = nil
		}
		if _, invalid := schemas.ParsePinID(string(row.Pin)); invalid != nil && d.Entity != feature.User {
			err = invalid
		}
		if err != nil {
			return fmt.Errorf("%s is a feature of a %s: %w", d.Name, d.Entity, err)
		}
	}
	return nil
}

type history struct {
	defs    []feature.Definition
	log     *topics.Log
	streams *topics.Streams
	deleted map[schemas.UserID]bool
	batch   int // rows
}

// batches calls visit with the rows of a file.
func (h *history) batches(path string, visit func([]historyRow) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRowBytes)
	var batch []historyRow
	for line := 1; lines.Scan(); line++ {
		var row historyRow
		if err := row.parse(lines.Bytes(), h.defs); err != nil {
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
		if batch = append(batch, row); len(batch) == h.batch {
			if err := visit(batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return visit(batch)
}

func (h *history) run(ctx context.Context, path string, out io.Writer, progress topics.Progress) error {
	_, err := each(ctx, h.log, h.streams.UsersDeleted, func(d *schemas.DeletedUser, _ *kgo.Record) { h.deleted[d.User] = true })
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	err = h.batches(path, func(batch []historyRow) error {
		p := h.needed(batch)
		if err := p.fill(ctx, h.log, h.streams); err != nil {
			return err
		}
		for _, row := range batch {
			if err := h.write(w, p, row); err != nil {
				return err
			}
		}
		progress.Add(len(batch))
		return nil
	})
	return errors.Join(err, w.Flush())
}

// needed returns an empty past for some rows.
func (h *history) needed(batch []historyRow) *past {
	p := newPast()
	p.after, p.upTo = math.MaxInt64, math.MinInt64
	for _, row := range batch {
		p.after = min(p.after, row.at-schemas.MicrosIn(feature.Kept))
		p.upTo = max(p.upTo, row.at)
		for _, d := range h.defs {
			p.expect(d.Entity, row.User, row.Pin)
		}
	}
	return p
}

// write writes a row with its values.
func (h *history) write(w io.Writer, p *past, row historyRow) error {
	values, missing := map[string]feature.Value{}, map[string][]feature.Reason{}
	for _, d := range h.defs {
		res := h.compute(p, d, row)
		values[d.Name] = res.Value
		if len(res.Reasons) > 0 {
			missing[d.Name] = res.Reasons
		}
	}
	added, err := json.Marshal(map[string]any{"values": values, "missing": missing})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s,%s\n", bytes.TrimSuffix(bytes.TrimSpace(row.text), []byte("}")), added[1:])
	return err
}

func (h *history) compute(p *past, d feature.Definition, row historyRow) feature.Result {
	switch {
	case d.Entity != feature.Pin && h.deleted[row.User]:
		return feature.Result{Reasons: []feature.Reason{feature.Erased}}
	case !recomputed(d):
		return feature.Result{Reasons: []feature.Reason{Order}}
	}
	res, sure := p.compute(d, row.User, row.Pin, feature.Span{AsOf: row.at, Now: row.at}, cut{row.at, row.at})
	if !sure {
		return feature.Result{Reasons: []feature.Reason{Retention}}
	}
	return res
}
