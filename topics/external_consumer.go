package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ExternalConsumer reads a topic and commits no offsets, as a database does that ingests records itself. Reached queries its
// progress.
type ExternalConsumer struct {
	Name  string // its name in a Lag, in place of a group
	Topic string
	// Reached returns for each partition the offset below which the effect of every record exists. It omits partitions that
	// the consumer has not started to read. After an error, Reached is called again.
	Reached func(ctx context.Context) (map[int32]int64, error)
}

// externalPositions returns the positions of an external consumer in all partitions of its topic, in order. Committed is
// the next offset that it reads, or -1 if it has not started. A position after the end of a partition is an error: the
// consumer has read a topic that was deleted since.
func (l *Log) externalPositions(ctx context.Context, c ExternalConsumer) ([]Position, error) {
	reached, err := c.Reached(ctx)
	if err != nil {
		return nil, err
	}
	e, err := l.extent(ctx, c.Topic) // after Reached, so that no position is after an end
	if err != nil {
		return nil, err
	}
	all := e.positions(c.Topic, reached)
	for _, at := range all {
		if at.Committed > at.End {
			return nil, fmt.Errorf("%s is at offset %d of %s/%d, which ends at %d: the topic was recreated: reset the consumer to the start of the topic",
				c.Name, at.Committed, at.Topic, at.Partition, at.End)
		}
	}
	return all, nil
}

// next returns the first unprocessed offset.
func (p Position) next() int64 { return max(p.Committed, p.Start) }

// firstBytes bounds the read of one record. Further records of a backlog are not needed.
const firstBytes = 64 << 10

// OldestUnprocessed returns the arrival time of the oldest unprocessed event: the earliest origin time among the first
// unprocessed records of the partitions. It returns the zero time if the consumers have reached every committed record.
func (l *Log) OldestUnprocessed(ctx context.Context, consumers ...ExternalConsumer) (oldest time.Time, err error) {
	var positions []Position
	for _, c := range consumers {
		own, err := l.externalPositions(ctx, c)
		if err != nil {
			return time.Time{}, err
		}
		positions = append(positions, own...)
	}
	for _, at := range positions {
		r, err := l.first(ctx, at)
		if err != nil {
			return time.Time{}, err
		}
		if r == nil {
			continue
		}
		if arrived := OriginTime(r).Time(); oldest.IsZero() || arrived.Before(oldest) {
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
// records do not count, because the position of an external consumer may stay before them forever. AwaitExternalConsumers calls
// progress, unless nil, after each check.
//
// Call it after Wait. The topics then contain all derived records, so both together wait for the external consumers as for
// any other reader.
func AwaitExternalConsumers(ctx context.Context, k Kafka, progress func(WaitState), consumers ...ExternalConsumer) error {
	if len(consumers) == 0 {
		return nil
	}
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	w := &waiter{log: l, backlogs: map[groupPartition]*backlog{}}
	return await(ctx, externalInterval, progress, func(ctx context.Context) (WaitState, error) {
		return w.checkExternal(ctx, consumers), nil
	})
}

// externalInterval is the time between two checks. Each check queries the servers of the external consumers.
const externalInterval = 100 * time.Millisecond

// checkExternal checks each external consumer once. The state's error names the consumers that did not answer.
func (w *waiter) checkExternal(ctx context.Context, consumers []ExternalConsumer) (state WaitState) {
	for _, c := range consumers {
		records, err := w.externalLag(ctx, c)
		if err != nil {
			state.Err = errors.Join(state.Err, fmt.Errorf("%s: %w", c.Name, err))
		}
		state.add(Lag{Group: c.Name, Topic: c.Topic, Records: records})
	}
	return state
}

// externalLag returns an upper bound of the records up to the ends at the first check that an external consumer has not
// reached.
func (w *waiter) externalLag(ctx context.Context, c ExternalConsumer) (sum int64, err error) {
	positions, err := w.log.externalPositions(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, at := range positions {
		b := w.backlog(groupPartition{c.Name, c.Topic, at.Partition}, at.End, 0)
		at.End = b.before
		records, err := w.log.unprocessed(ctx, b, at, firstBytes)
		if err != nil {
			return 0, err
		}
		sum += records
	}
	return sum, nil
}
