package topics

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Bounds of a batch that clients decode. A producer controls how far a batch expands: 8 KB can hold four million headers,
// each of which takes 2 bytes decompressed and 56 in memory.
const (
	// MaxDecompressedBytes bounds the decompressed bytes of a batch's records.
	MaxDecompressedBytes = 64 << 20
	// MaxDecodedBytes bounds the memory of a batch's decoded records, including recordCost and headerCost.
	MaxDecodedBytes = 128 << 20
	// MaxHeaders bounds the headers of one record.
	MaxHeaders = 1024

	recordCost = 300 // bytes of memory per record beyond its own bytes, in the larger of sarama and franz-go
	headerCost = 64  // the same per header
)

var (
	errLargeBatch     = errors.New("too large to decode")
	errMalformedBatch = errors.New("malformed records")
)

// decodedSize returns the number of a batch's decompressed records and the memory that they take when decoded. It returns
// errLargeBatch for records beyond the bounds, and errMalformedBatch for records that no client can decode. It does not
// allocate for a batch within the bounds.
func decodedSize(raw []byte) (records, size int, err error) {
	for size = len(raw); len(raw) > 0; records++ {
		length, n := binary.Varint(raw)
		if n <= 0 || length < 0 || length > int64(len(raw)-n) {
			return 0, 0, errMalformedBatch
		}
		headers, err := countHeaders(raw[n : n+int(length)])
		if err != nil {
			return 0, 0, err
		}
		if size += recordCost + headers*headerCost; size > MaxDecodedBytes {
			return 0, 0, fmt.Errorf("%w: more than %d bytes of memory", errLargeBatch, MaxDecodedBytes)
		}
		raw = raw[n+int(length):]
	}
	return records, size, nil
}

// countHeaders returns the number of headers of one record. The fields of a record are attributes, time, offset, key, value
// and headers.
func countHeaders(record []byte) (int, error) {
	if len(record) == 0 {
		return 0, errMalformedBatch
	}
	c := recordCursor{rest: record[1:]}
	c.varint()
	c.varint()
	c.skipBytes()
	c.skipBytes()
	n := c.varint()
	switch {
	case c.failed || n < 0 || n > int64(len(c.rest)/2): // a header takes at least two bytes
		return 0, errMalformedBatch
	case n > MaxHeaders:
		return 0, fmt.Errorf("%w: a record has %d headers, more than %d", errLargeBatch, n, MaxHeaders)
	}
	for range n {
		c.skipBytes()
		c.skipBytes()
	}
	if c.failed || len(c.rest) > 0 {
		return 0, errMalformedBatch
	}
	return int(n), nil
}

// recordCursor reads the fields of a record. After a failure it no longer advances.
type recordCursor struct {
	rest   []byte
	failed bool
}

func (c *recordCursor) varint() int64 {
	if len(c.rest) > 0 && c.rest[0] < 0x80 { // the common case
		b := c.rest[0]
		c.rest = c.rest[1:]
		return int64(b>>1) ^ -int64(b&1)
	}
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.failed, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// skipBytes skips a byte string. A length of -1 means null.
func (c *recordCursor) skipBytes() {
	n := c.varint()
	switch {
	case n == -1:
	case n < 0 || n > int64(len(c.rest)):
		c.failed, c.rest = true, nil
	default:
		c.rest = c.rest[n:]
	}
}

// boundedDecompressor is a kgo.Decompressor that rejects batches beyond the bounds before the client decodes them. The
// client then returns a *kgo.ErrDecompressTooLarge.
type boundedDecompressor struct{ kgo.Decompressor }

func (d boundedDecompressor) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	out, err := d.Decompressor.Decompress(src, codec)
	if err != nil || codec == kgo.CodecNone {
		return out, err
	}
	if _, _, err := decodedSize(out); errors.Is(err, errLargeBatch) { // the client reports malformed batches itself
		return nil, fmt.Errorf("%w: %w", kgo.ErrMaxDecompress, err)
	}
	return out, nil
}
