package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ExternalConsumer reads a topic and commits no offsets, as a database does that ingests records itself. Reached queries its
// progress.
type ExternalConsumer struct {
	Name  string // its name in a Lag, in place of a group
	Topic string
	// Reached returns for each partition the offset below which the effect of every record exists. A missing partition has
	// not been started. After an error, Reached is called again.
	Reached func(ctx context.Context) (map[int32]int64, error)
}

// externalPositions returns the positions of an external consumer in all partitions of its topic, in order. Committed is
// the next offset that it reads, or -1 if it has not started. A position after the end of a partition is an error: the
// consumer has read a topic that was deleted since.
func (l *Log) externalPositions(ctx context.Context, o ExternalConsumer) ([]Position, error) {
	reached, err := o.Reached(ctx)
	if err != nil {
		return nil, err
	}
	starts, err := l.Starts(ctx, o.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := l.Ends(ctx, o.Topic) // after Reached, so that no position is after an end
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
			return nil, fmt.Errorf("%s is at offset %d of %s/%d, which ends at %d: the topic was recreated: reset the consumer to the start of the topic",
				o.Name, at.Committed, o.Topic, p, at.End)
		}
		all = append(all, at)
	}
	return all, nil
}

// next returns the first unprocessed offset.
func (p Position) next() int64 { return max(p.Committed, p.Start) }

// firstBytes bounds the read of one record. Further records of a backlog are not needed.
const firstBytes = 64 << 10

// OldestLeft returns the arrival time of the oldest unprocessed event. It reads the first record of each partition that the
// external consumer has not reached, and takes the arrival of the external event behind it. It returns the zero time if the
// consumer has reached every committed record.
func (l *Log) OldestLeft(ctx context.Context, o ExternalConsumer) (oldest time.Time, err error) {
	positions, err := l.externalPositions(ctx, o)
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

// first returns the first unprocessed committed record, or nil if there is none.
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

// AwaitExternalConsumers returns nil when the external consumers have reached every record that was committed at the call, and a
// *WaitError when ctx is canceled before. It retries brokers and external consumers that do not answer. Markers and aborted
// records do not count, because an external consumer may stay before them forever. AwaitExternalConsumers calls progress, unless
// nil, after each check.
//
// Call it after Wait. The topics then contain all derived records, so both together wait for the external consumers as for
// any other reader.
func AwaitExternalConsumers(ctx context.Context, k Kafka, progress func(WaitState), consumers ...ExternalConsumer) error {
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	w := &awaiting{log: l, left: map[place]*backlog{}}
	var last WaitState
	for len(consumers) > 0 {
		state := w.look(ctx, consumers)
		if ctx.Err() != nil {
			return &WaitError{State: last, Cause: context.Cause(ctx)}
		}
		if last = state; progress != nil {
			progress(last)
		}
		if last.Err == nil && len(last.Behind) == 0 {
			return nil
		}
		select {
		case <-time.After(externalEvery):
		case <-ctx.Done(): // reported by the next check
		}
	}
	return nil
}

// externalEvery is the time between two checks. Each check queries the servers of the external consumers.
const externalEvery = 100 * time.Millisecond

// awaiting is one call of AwaitExternalConsumers.
type awaiting struct {
	log  *Log
	left map[place]*backlog // up to the ends at the first check
}

// look checks each external consumer once. state.Err names the consumers that did not answer; the others are checked all
// the same.
func (w *awaiting) look(ctx context.Context, consumers []ExternalConsumer) (state WaitState) {
	for _, o := range consumers {
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

// behind returns an upper bound of the records that an external consumer has not reached.
func (w *awaiting) behind(ctx context.Context, o ExternalConsumer) (sum int64, err error) {
	positions, err := w.log.externalPositions(ctx, o)
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
