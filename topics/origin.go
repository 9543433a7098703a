package topics

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// SinceHeader is the header of derived records that contains the arrival time of the original external event: eight bytes,
// big-endian, in microseconds. A record without the header is itself the origin, and its timestamp is the arrival time.
const SinceHeader = "since"

// SinceOf returns the record's since header, or its timestamp if the header is missing or malformed.
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

// ParseSince parses the value of a since header. It returns false if the value is malformed.
func ParseSince(value []byte) (schemas.Micros, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return schemas.Micros(binary.BigEndian.Uint64(value)), true
}

// WithSince returns the headers with a since header appended.
func WithSince(headers []kgo.RecordHeader, since schemas.Micros) []kgo.RecordHeader {
	return append(headers, kgo.RecordHeader{Key: SinceHeader, Value: SinceValue(since)})
}
