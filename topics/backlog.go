package topics

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// maxScan bounds the backlog that a check reads, in records.
const maxScan = 20_000

// backlog tracks the records that have been read between a group's committed offset and the end of a partition. A record that
// is not old never becomes old, so each record is read once.
type backlog struct {
	before int64          // records below existed at the call, so all of them are old
	since  schemas.Micros // records that originate at or before this time are old

	scanned int64 // all records from the committed offset to this one have been read
	lastOld int64 // the last old record that was read; -1: none
}

// pending reports whether an old record lies in [from, end). read returns committed records from an offset, and the offset
// to continue at; no progress means that a transaction is open there. A backlog of more than maxScan records that starts
// before the call counts as pending without being read.
func (b *backlog) pending(from, end int64, read func(from int64) ([]*kgo.Record, int64, error)) (bool, error) {
	b.scanned = max(b.scanned, from)
	if from <= b.lastOld {
		return true, nil
	}
	if b.scanned < b.before && end-b.scanned > maxScan {
		return true, nil
	}
	for b.scanned < end {
		records, next, err := read(b.scanned)
		if err != nil {
			return false, err
		}
		if next <= b.scanned {
			return true, nil
		}
		for _, r := range records {
			if r.Offset < b.before || OriginTime(r) <= b.since {
				b.lastOld, b.scanned = r.Offset, r.Offset+1
				return true, nil
			}
		}
		b.scanned = next
	}
	return false, nil
}

// unprocessed returns an upper bound of the records after a position, or 0 if none of them is old. Each read has at most
// maxBytes.
func (l *Log) unprocessed(ctx context.Context, b *backlog, at Position, maxBytes int32) (int64, error) {
	pending, err := b.pending(at.next(), at.End, func(from int64) ([]*kgo.Record, int64, error) {
		return l.read(ctx, at.Topic, at.Partition, from, maxBytes)
	})
	if err != nil || !pending {
		return 0, err
	}
	return max(1, at.End-at.next()), nil
}
