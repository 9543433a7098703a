package generator

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// LogEnd returns the end of a partition: the offset after the last record for readers, or 0 if there is none. DataEnd
// implements it.
type LogEnd interface {
	End(ctx context.Context, topic string, partition int32) (int64, error)
}

// Log reads partitions by offset. *topics.Log implements it.
type Log interface {
	// End returns the offset that the next record gets.
	End(ctx context.Context, topic string, partition int32) (int64, error)
	// Read returns some records starting at an offset, and the offset to continue from. At the end it returns the same offset.
	Read(ctx context.Context, topic string, partition int32, from int64) ([]*kgo.Record, int64, error)
}

// DataEnd is the LogEnd of a Log. It does not use the end offset from the brokers, because the offsets before that can be
// unused or control records, which readers never get.
type DataEnd struct{ Log Log }

// End implements LogEnd. It reads the tail of the partition, and then further back until it finds a record.
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

// last returns the offset after the last record in [from, end), or 0 if there is none.
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
