package pools

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// LogEnd says where a partition of a topic ends: the offset behind the last record that a reader gets, 0 if there is
// none. DataEnd is one.
type LogEnd interface {
	End(ctx context.Context, topic string, partition int32) (int64, error)
}

// Log reads partitions by offset. *topics.Log does.
type Log interface {
	// End returns the offset that the next record gets.
	End(ctx context.Context, topic string, partition int32) (int64, error)
	// Read returns some records from an offset on, and the offset to go on from; the same one at the end.
	Read(ctx context.Context, topic string, partition int32, from int64) ([]*kgo.Record, int64, error)
}

// DataEnd is the LogEnd of a Log. The end that brokers tell will not do: there may be control records before it, which
// are never applied and never seen, or nothing at all.
type DataEnd struct{ Log Log }

// End implements LogEnd. It reads the tail of the partition, further back only while it holds no record.
func (d DataEnd) End(ctx context.Context, topic string, partition int32) (int64, error) {
	end, err := d.Log.End(ctx, topic, partition)
	if err != nil {
		return 0, err
	}
	for span := int64(1); ; span *= 16 {
		from := max(0, end-span)
		last, err := d.last(ctx, topic, partition, from, end)
		if err != nil || last > 0 || from == 0 {
			return last, err
		}
	}
}

// last returns the offset behind the last record in a stretch, 0 if there is none.
func (d DataEnd) last(ctx context.Context, topic string, partition int32, from, end int64) (int64, error) {
	last := int64(0)
	for from < end {
		records, next, err := d.Log.Read(ctx, topic, partition, from)
		if err != nil {
			return 0, err
		}
		for _, r := range records {
			if r.Offset < end {
				last = r.Offset + 1
			}
		}
		if next == from {
			break
		}
		from = next
	}
	return last, nil
}
