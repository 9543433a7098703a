package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// Outsider is who reads a topic and commits nothing to the brokers, as a database does that takes records by itself: it
// is asked how far it is.
type Outsider struct {
	Name  string // that a Lag has for a group
	Topic string
	// Reached returns of each partition the offset below which the effect of every record is there. A partition that is not
	// in it has not been begun. An error is an outsider that does not say: it is asked again.
	Reached func(ctx context.Context) (map[int32]int64, error)
}

// outsiderPositions returns where an outsider stands in all partitions of its topic, in their order; Committed is what it reads
// next, -1 where it has not begun. One that is beyond a partition's end has read a topic that was deleted: an error.
func (l *Log) outsiderPositions(ctx context.Context, o Outsider) ([]Position, error) {
	reached, err := o.Reached(ctx)
	if err != nil {
		return nil, err
	}
	starts, err := l.Starts(ctx, o.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := l.Ends(ctx, o.Topic) // after what is reached, which is not beyond them then
	if err != nil {
		return nil, err
	}
	var all []Position
	for _, p := range slices.Sorted(maps.Keys(ends[o.Topic])) {
		at := Position{Topic: o.Topic, Partition: p, Committed: -1, Start: starts[o.Topic][p], End: ends[o.Topic][p]}
		if next, ok := reached[p]; ok {
			at.Committed = next
		}
		if at.Committed > at.End {
			return nil, fmt.Errorf("%s is at offset %d of %s/%d, which ends at %d: the topic was made anew, have it begin anew, too",
				o.Name, at.Committed, o.Topic, p, at.End)
		}
		all = append(all, at)
	}
	return all, nil
}

// next is the first offset that is not worked off.
func (p Position) next() int64 { return max(p.Committed, p.Start) }

// firstBytes is how much is read for one record: where many wait, the others are not looked at.
const firstBytes = 64 << 10

// OldestLeft returns when the outside event arrived that began the first record which an outsider has not reached, of all
// partitions the earliest; zero when it has all that is committed.
func (l *Log) OldestLeft(ctx context.Context, o Outsider) (oldest time.Time, err error) {
	positions, err := l.outsiderPositions(ctx, o)
	if err != nil {
		return time.Time{}, err
	}
	for _, at := range positions {
		r, err := l.first(ctx, at)
		if err != nil {
			return time.Time{}, err
		}
		if r == nil {
			continue
		}
		if arrived := SinceOf(r).Time(); oldest.IsZero() || arrived.Before(oldest) {
			oldest = arrived
		}
	}
	return oldest, nil
}

// first returns the first committed record that is not worked off, nil if there is none.
func (l *Log) first(ctx context.Context, at Position) (*kgo.Record, error) {
	for from := at.next(); from < at.End; {
		records, next, err := l.read(ctx, at.Topic, at.Partition, from, firstBytes)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 {
			return records[0], nil
		}
		if next <= from { // a transaction is open
			return nil, nil
		}
		from = next
	}
	return nil, nil
}

// AwaitOutsiders returns nil when outsiders have reached every record that is committed at the call, and a *WaitError when ctx
// ends before. Brokers and outsiders that are away, or do not say, are asked again. Markers and what was aborted count
// for nothing: an outsider may stand before them for ever. progress, which may be nil, is called after each look.
//
// After Wait the two have waited for the outsiders as for any reader: what came of the events is in the topics by then.
func AwaitOutsiders(ctx context.Context, k Kafka, progress func(WaitState), outsiders ...Outsider) error {
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	w := &awaiting{log: l, left: map[place]*backlog{}}
	var last WaitState
	for len(outsiders) > 0 {
		state := w.look(ctx, outsiders)
		if ctx.Err() != nil {
			return &WaitError{State: last, Cause: context.Cause(ctx)}
		}
		if last = state; progress != nil {
			progress(last)
		}
		if last.Err == nil && len(last.Behind) == 0 {
			return nil
		}
		pause.For(ctx, outsidersEvery)
	}
	return nil
}

// outsidersEvery is the time between two looks at outsiders: each look asks their servers.
const outsidersEvery = 100 * time.Millisecond

// awaiting is one call of AwaitOutsiders.
type awaiting struct {
	log  *Log
	left map[place]*backlog // up to the ends at the first look
}

// look asks each outsider once. One that does not say is named by the error; the others are looked at all the same.
func (w *awaiting) look(ctx context.Context, outsiders []Outsider) (state WaitState) {
	for _, o := range outsiders {
		records, err := w.behind(ctx, o)
		if err != nil {
			state.Err = errors.Join(state.Err, fmt.Errorf("%s: %w", o.Name, err))
		}
		if records > 0 {
			state.Behind = append(state.Behind, Lag{Group: o.Name, Topic: o.Topic, Records: records})
		}
	}
	return state
}

// behind returns how many records an outsider has still to reach, at most.
func (w *awaiting) behind(ctx context.Context, o Outsider) (sum int64, err error) {
	positions, err := w.log.outsiderPositions(ctx, o)
	if err != nil {
		return 0, err
	}
	for _, at := range positions {
		key := place{o.Name, o.Topic, at.Partition}
		if w.left[key] == nil {
			w.left[key] = &backlog{before: at.End, lastOld: -1}
		}
		left := w.left[key]
		pending, err := left.pending(at.next(), left.before, func(from int64) ([]*kgo.Record, int64, error) {
			return w.log.read(ctx, at.Topic, at.Partition, from, firstBytes)
		})
		if err != nil {
			return 0, err
		}
		if pending {
			sum += max(1, left.before-at.next())
		}
	}
	return sum, nil
}
