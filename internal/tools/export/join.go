package export

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// batch joins the visits at consecutive offsets of a partition, on one day, with actions. Add the visits first.
type batch struct {
	extent
	day    string
	labels []Label
	visits []visit
	bytes  int            // of the encoded visits
	oldest schemas.Micros // time of the oldest visit
	items  map[subject][]int
	first  []schemas.Micros // time of the first action, by item and label; none: no action
	times  []schemas.Micros // of the visit, by item
}

// visit is a visit and the number of its first item in the batch.
type visit struct {
	*schemas.LoggedVisit
	item int
}

type subject struct {
	user schemas.UserID
	pin  schemas.PinID
}

const none schemas.Micros = math.MaxInt64

func newBatch(labels []Label) *batch {
	return &batch{labels: labels, oldest: none, items: map[subject][]int{}}
}

// addVisit adds a visit whose encoded size is given.
func (b *batch) addVisit(v *schemas.LoggedVisit, bytes int) {
	b.bytes += bytes
	b.visits = append(b.visits, visit{v, len(b.times)})
	b.oldest = min(b.oldest, v.Time)
	for _, item := range v.Items {
		of := subject{v.User, item.Pin}
		b.items[of] = append(b.items[of], len(b.times))
		b.times = append(b.times, v.Time)
		b.first = append(b.first, slices.Repeat([]schemas.Micros{none}, len(b.labels))...)
	}
}

// addAction accepts actions in any order, also repeatedly.
func (b *batch) addAction(a *schemas.EnrichedAction) {
	for _, item := range b.items[subject{a.Actor, schemas.PinID(a.Object)}] {
		for i, l := range b.labels {
			if a.Verb == l.Verb && a.Timestamp >= b.times[item] && a.Timestamp <= l.end(b.times[item]) {
				first := &b.first[item*len(b.labels)+i]
				*first = min(*first, a.Timestamp)
			}
		}
	}
}

// span is the time for which the log of actions is complete.
type span struct{ since, until schemas.Micros }

// final reports whether the windows of a visit have ended.
func (s span) final(labels []Label, visit schemas.Micros) bool {
	return !slices.ContainsFunc(labels, func(l Label) bool { return l.end(visit) > s.until })
}

// labelsOf returns the labels of an item.
func (b *batch) labelsOf(item int, s span) []training.Label {
	labels := make([]training.Label, len(b.labels))
	for i, l := range b.labels {
		at, first := b.times[item], b.first[item*len(b.labels)+i]
		if at < s.since || l.end(at) > s.until {
			continue // unknown
		}
		labels[i].Acted = new(first != none)
		if first != none {
			labels[i].After = new(float64(first-at) / 1e6)
		}
	}
	return labels
}

// actionSlack is subtracted from the time of a visit to find the first records of actions after it: event times may be ahead by
// schemas.MaxAhead, and the clocks of the servers differ.
const actionSlack = time.Hour

// errUntil stops the reading of visits at Config.Until.
var errUntil = errors.New("until")

// partition writes the visits of a partition, starting at an offset.
func (e *job) partition(ctx context.Context, partition int32, from int64) error {
	b, name := newBatch(e.Labels), e.VisitLog.Name
	read := topics.Decoded(e.VisitLog, func(v *schemas.LoggedVisit, r *kgo.Record) error {
		if !e.Until.IsZero() && v.Time >= schemas.MicrosOf(e.Until) {
			return errUntil
		}
		open := b.open || !span{until: schemas.MicrosOf(e.Now)}.final(e.Labels, v.Time)
		day := v.Time.Time().Format(time.DateOnly)
		if day != b.day || open != b.open || b.bytes > e.MaxBatchBytes {
			if err := e.flush(ctx, b); err != nil {
				return err
			}
			b = newBatch(e.Labels)
			b.day, b.extent = day, extent{partition, r.Offset, r.Offset, open}
		}
		b.last = r.Offset
		e.add(b, v, len(r.Value))
		return nil
	})
	if err := e.log.ReadTo(ctx, name, partition, from, e.ends[name][partition], read); err != nil && !errors.Is(err, errUntil) {
		return err
	}
	return e.flush(ctx, b)
}

// add adds a visit to a batch, unless it is not to be exported.
func (e *job) add(b *batch, v *schemas.LoggedVisit, bytes int) {
	if e.deleted[v.User] || !e.Since.IsZero() && v.Time < schemas.MicrosOf(e.Since) {
		e.total.Skipped++
		return
	}
	b.addVisit(v, bytes)
}

// flush joins a batch with the actions and writes its file.
func (e *job) flush(ctx context.Context, b *batch) error {
	if len(b.visits) == 0 {
		return nil
	}
	complete, err := e.join(ctx, b)
	if err == nil {
		err = e.files.write(b.day, b.extent, func(out io.Writer) error { return e.write(ctx, out, b, complete) })
	}
	if err != nil {
		return err
	}
	e.total.Visits += len(b.visits)
	e.total.Items += len(b.times)
	e.total.Files++
	if b.open {
		e.total.Open += len(b.visits)
	}
	e.progress.Add(len(b.visits))
	return nil
}

// join adds the actions to a batch, and returns the time for which they are complete.
func (e *job) join(ctx context.Context, b *batch) (span, error) {
	name := e.ActionsEnriched.Name
	complete := span{since: math.MinInt64, until: schemas.MicrosOf(e.Now)}
	offsets, err := e.log.From(ctx, b.oldest.Time().Add(-actionSlack), name)
	if err != nil {
		return complete, err
	}
	start := e.starts[name][b.partition]
	from := max(start, offsets[name][b.partition])
	if start > 0 && from == start { // the topic has deleted earlier actions; the first record sets the time
		complete.since = complete.until
	}
	read := topics.Decoded(e.ActionsEnriched, func(a *schemas.EnrichedAction, r *kgo.Record) error {
		if complete.since == complete.until {
			complete.since = schemas.MicrosOf(r.Timestamp)
		}
		b.addAction(a)
		return nil
	})
	err = e.log.ReadAround(ctx, name, b.partition, from, e.ends[name][b.partition], read)
	return complete, err
}

// write writes a file.
func (e *job) write(ctx context.Context, out io.Writer, b *batch, complete span) error {
	layout := e.layout(b.visits)
	w, err := training.NewWriter(out, layout)
	if err != nil {
		return err
	}
	for _, v := range b.visits {
		for i := range v.Items {
			r := row(layout, v, i)
			r.Labels = b.labelsOf(v.item+i, complete)
			if err := w.Write(r); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return w.Close()
}
