package topics

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// SinceHeader is the header of derived records that says when the outside event that began them arrived: eight bytes,
// big-endian, microseconds. A record without it has begun something itself, when it arrived.
const SinceHeader = "since"

// SinceOf returns the record's since header, its own timestamp if it has none or one that cannot be read.
func SinceOf(r *kgo.Record) schemas.Micros {
	for _, h := range r.Headers {
		if since, ok := ParseSince(h.Value); ok && h.Key == SinceHeader {
			return since
		}
	}
	return schemas.MicrosOf(r.Timestamp)
}

// SinceValue returns the value of a since header.
func SinceValue(since schemas.Micros) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(since))
}

// ParseSince reads the value of a since header.
func ParseSince(value []byte) (schemas.Micros, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return schemas.Micros(binary.BigEndian.Uint64(value)), true
}

// WithSince returns the headers with the since header set.
func WithSince(headers []kgo.RecordHeader, since schemas.Micros) []kgo.RecordHeader {
	return append(headers, kgo.RecordHeader{Key: SinceHeader, Value: SinceValue(since)})
}
