package export

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// batch joins the visits at consecutive offsets of a partition, on one day, with actions. Add the visits first.
type batch struct {
	durable.Part
	day    string
	labels Labels
	visits []*schemas.LoggedVisit
	bytes  int            // of the encoded visits
	oldest schemas.Micros // time of the oldest visit
	items  []*item
	of     map[subject][]*item
}

// item is an item of a visit.
type item struct {
	*schemas.LoggedVisit
	position int
	first    map[schemas.Verb]schemas.Micros // time of the first action with the verb of a label
}

type subject struct {
	user schemas.UserID
	pin  schemas.PinID
}

func newBatch(labels Labels) *batch {
	return &batch{labels: labels, oldest: math.MaxInt64, of: map[subject][]*item{}}
}

// addVisit adds a visit whose encoded size is given.
func (b *batch) addVisit(v *schemas.LoggedVisit, bytes int) {
	b.bytes += bytes
	b.visits = append(b.visits, v)
	b.oldest = min(b.oldest, v.Time)
	for i := range v.Items {
		it, of := &item{v, i, map[schemas.Verb]schemas.Micros{}}, subject{v.User, v.Items[i].Pin}
		b.items, b.of[of] = append(b.items, it), append(b.of[of], it)
	}
}

// addAction accepts actions in any order, also repeatedly.
func (b *batch) addAction(a *schemas.EnrichedAction) {
	window, labeled := b.labels[a.Verb]
	for _, it := range b.of[subject{a.Actor, schemas.PinID(a.Object)}] {
		first, acted := it.first[a.Verb]
		if labeled && a.Timestamp >= it.Time && a.Timestamp <= it.Time+schemas.MicrosIn(window) && (!acted || a.Timestamp < first) {
			it.first[a.Verb] = a.Timestamp
		}
	}
}

// actionSlack is subtracted from the time of a visit to find the first records of actions after it: event times may be ahead by
// schemas.MaxAhead, and the clocks of the servers differ.
const actionSlack = time.Hour

// errEnd stops the reading of records.
var errEnd = errors.New("end")

// partition writes the visits of a partition, starting at an offset.
func (e *job) partition(ctx context.Context, partition int32, from int64) error {
	since, err := e.since(ctx, partition)
	if err != nil {
		return err
	}
	b, name, end := newBatch(e.Labels), e.VisitLog.Name, schemas.MicrosOf(e.total.Until)
	read := topics.Decoded(e.VisitLog, func(v *schemas.LoggedVisit, r *kgo.Record) error {
		if v.Time >= end {
			return errEnd
		}
		if day := v.Time.Time().Format(time.DateOnly); day != b.day || b.bytes > e.MaxBatchBytes {
			if err := e.flush(ctx, b); err != nil {
				return err
			}
			b = newBatch(e.Labels)
			b.day, b.Part = day, durable.Part{Partition: partition, First: r.Offset}
		}
		b.Last = r.Offset
		if e.deleted[v.User] || v.Time < since {
			e.total.Skipped++
		} else {
			b.addVisit(v, len(r.Value))
		}
		return nil
	})
	if err := e.log.ReadTo(ctx, name, partition, from, e.ends[name][partition], read); err != nil && !errors.Is(err, errEnd) {
		return err
	}
	return e.flush(ctx, b)
}

// since returns the time of the first visits of a partition to write: Config.Since or, if the topic may have deleted actions,
// the arrival of its oldest one.
func (e *job) since(ctx context.Context, partition int32) (schemas.Micros, error) {
	name, since := e.ActionsEnriched.Name, schemas.MicrosOf(e.Since)
	start := e.starts[name][partition]
	if start == 0 {
		return since, nil
	}
	oldest := schemas.Micros(math.MaxInt64) // if no action is left, the deleted ones may be recent
	err := e.log.ReadAround(ctx, name, partition, start, e.ends[name][partition], func(r *kgo.Record) error {
		oldest = schemas.MicrosOf(r.Timestamp)
		return errEnd
	})
	if err != nil && !errors.Is(err, errEnd) {
		return 0, err
	}
	return max(since, oldest), nil
}

// flush joins a batch with the actions and writes its file.
func (e *job) flush(ctx context.Context, b *batch) error {
	if len(b.visits) == 0 {
		return nil
	}
	if err := e.join(ctx, b); err != nil {
		return err
	}
	if err := e.files.Write(b.day, b.Part, func(out io.Writer) error { return e.write(ctx, out, b) }); err != nil {
		return err
	}
	e.total.Visits += len(b.visits)
	e.total.Items += len(b.items)
	e.total.Files++
	e.progress.Add(len(b.visits))
	return nil
}

// join adds the actions to a batch.
func (e *job) join(ctx context.Context, b *batch) error {
	name := e.ActionsEnriched.Name
	from, err := e.log.From(ctx, b.oldest.Time().Add(-actionSlack), name)
	if err != nil {
		return err
	}
	read := topics.Decoded(e.ActionsEnriched, func(a *schemas.EnrichedAction, _ *kgo.Record) error {
		b.addAction(a)
		return nil
	})
	return e.log.ReadAround(ctx, name, b.Partition, from[name][b.Partition], e.ends[name][b.Partition], read)
}

// write writes a file.
func (e *job) write(ctx context.Context, out io.Writer, b *batch) error {
	w, err := training.NewWriter(out, e.layout(b.visits))
	if err != nil {
		return err
	}
	for _, it := range b.items {
		if err := errors.Join(ctx.Err(), w.Write(it.row())); err != nil {
			return err
		}
	}
	return w.Close()
}
