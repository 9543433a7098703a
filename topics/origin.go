package topics

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// OriginHeader is the header of derived records that contains the arrival time of the original external event: eight bytes,
// big-endian, in microseconds. A record without the header is itself the origin, and its timestamp is the arrival time.
const OriginHeader = "origin-time"

// OriginTime returns the time in the record's origin header, or its timestamp if the header is missing or malformed.
func OriginTime(r *kgo.Record) schemas.Micros {
	if at, ok := ParseOrigin(header(r, OriginHeader)); ok {
		return at
	}
	return schemas.MicrosOf(r.Timestamp)
}

// header returns the value of the record's first header with a key, or nil if there is none.
func header(r *kgo.Record, key string) []byte {
	for _, h := range r.Headers {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

// OriginValue returns the value of an origin header.
func OriginValue(at schemas.Micros) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at))
}

// ParseOrigin parses the value of an origin header. It returns false if the value is malformed.
func ParseOrigin(value []byte) (schemas.Micros, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return schemas.Micros(binary.BigEndian.Uint64(value)), true
}

// WithOrigin returns the headers with an origin header appended.
func WithOrigin(headers []kgo.RecordHeader, at schemas.Micros) []kgo.RecordHeader {
	return append(headers, kgo.RecordHeader{Key: OriginHeader, Value: OriginValue(at)})
}
