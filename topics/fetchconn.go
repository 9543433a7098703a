package topics

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchConn is a sarama connection to a broker that bounds the memory of fetch responses.
//
// sarama decodes all batches of a response at once and allocates for each record and header. It retries a batch that it
// cannot decode forever. fetchConn therefore reads the responses to fetch requests first, and decompresses and
// bounds their batches. A batch that cannot be decoded within the bounds is replaced by a batch of one record. This record
// has the last offset of the batch and contains the reason, see Unread. fetchConn relies on sarama writing each request
// with one call.
type fetchConn struct {
	net.Conn
	unpack kgo.Decompressor

	mu      sync.Mutex
	fetches map[int32]int16 // versions of the fetch requests in flight, by correlation id

	rest    []byte // unread bytes of the current response
	through int    // bytes of the response after rest, which Read does not change
	err     error  // after this error, the boundaries of responses are unknown
}

const (
	requestHead  = 4 + 2 + 2 + 4 // size, API key, version, correlation id
	responseHead = 4 + 4         // size, correlation id
)

// Write records the correlation ids of fetch requests.
func (c *fetchConn) Write(p []byte) (int, error) {
	if len(p) >= requestHead && kmsg.Key(binary.BigEndian.Uint16(p[4:])) == kmsg.Fetch {
		c.mu.Lock()
		c.fetches[int32(binary.BigEndian.Uint32(p[8:]))] = int16(binary.BigEndian.Uint16(p[6:]))
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

// Read returns the bytes of the responses, with fetch responses bounded.
func (c *fetchConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 && c.through == 0 && c.err == nil {
		c.err = c.next()
	}
	switch {
	case c.err != nil:
		return 0, c.err
	case len(c.rest) > 0:
		n := copy(p, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil // release the buffer, which may be large
		}
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.through)])
	c.through -= n
	return n, err
}

// next reads the header of a response, and also the body if the response is to a fetch request.
func (c *fetchConn) next() error {
	head := make([]byte, responseHead)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(head)) - 4
	if size < 0 || size > int64(sarama.MaxResponseSize) {
		return fmt.Errorf("read response: size %d is out of range [0, %d]", size, sarama.MaxResponseSize)
	}
	version, isFetch := c.takeFetch(int32(binary.BigEndian.Uint32(head[4:])))
	if !isFetch {
		c.rest, c.through = head, int(size)
		return nil
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.Conn, body); err != nil {
		return err
	}
	var err error
	c.rest, err = boundResponse(head, body, version, c.unpack)
	return err
}

// takeFetch returns the version of the fetch request that a response belongs to. It returns false for any other response.
func (c *fetchConn) takeFetch(correlation int32) (version int16, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, ok = c.fetches[correlation]
	delete(c.fetches, correlation)
	return version, ok
}

// boundResponse returns the response to a fetch request with its batches bounded.
func boundResponse(head, body []byte, version int16, unpack kgo.Decompressor) ([]byte, error) {
	answer := kmsg.NewPtrFetchResponse()
	answer.Version = version
	if answer.IsFlexible() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("read fetch response: unexpected tags in the header")
		}
		head, body = append(head, 0), body[1:]
	}
	if err := answer.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("read fetch response: %w", err)
	}
	b, size := bounder{unpack: unpack, budget: MaxDecompressedBytes}, len(body)
	for i := range answer.Topics {
		for j := range answer.Topics[i].Partitions {
			p := &answer.Topics[i].Partitions[j]
			size -= len(p.RecordBatches)
			p.RecordBatches = b.bound(p.RecordBatches)
			size += len(p.RecordBatches) + 4 // a greater length takes up to four more bytes
		}
	}
	out := answer.AppendTo(slices.Grow(head, size))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, nil
}

// bounder bounds the batches of one response. Together they take at most MaxDecompressedBytes of memory, or the response
// contains a single batch. Further batches are omitted, and sarama requests them again.
type bounder struct {
	unpack   kgo.Decompressor
	budget   int
	included bool // at least one batch was included
}

// Offsets of the fields in a batch. https://kafka.apache.org/documentation/#recordbatch
const (
	atLength, atMagic, atCRC, atAttributes, atLastDelta, atRecords, batchHead = 8, 16, 17, 21, 23, 57, 61

	codecBits, controlBit = 0x07, 0x20
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// bound returns the batches of a partition, decompressed. It keeps a truncated batch at the end, because sarama derives
// from it how much to request.
func (b *bounder) bound(batches []byte) []byte {
	var out []byte
	for rest := batches; len(rest) > 0; {
		length := 0
		if len(rest) >= batchHead {
			length = int(int32(binary.BigEndian.Uint32(rest[atLength:]))) + atLength + 4
		}
		if length < batchHead || length > len(rest) || rest[atMagic] != 2 {
			return append(out, rest...)
		}
		var ok bool
		if out, ok = b.appendBatch(out, rest[:length]); !ok {
			break
		}
		rest = rest[length:]
	}
	return out
}

// appendBatch appends a batch without compression, or its replacement. It returns false if it omits the batch.
func (b *bounder) appendBatch(out, batch []byte) ([]byte, bool) {
	if crc32.Checksum(batch[atAttributes:], crcTable) != binary.BigEndian.Uint32(batch[atCRC:]) {
		return append(out, batch...), true // sarama reports the checksum error
	}
	records, size, err := b.open(batch)
	switch {
	case err != nil:
		return appendUnread(out, batch, err), true
	case b.included && size > b.budget:
		return out, false
	}
	b.budget, b.included = b.budget-size, true
	return appendRebuilt(out, batch, records, codecBits), true
}

// open returns the decompressed records of a batch, and the memory that they take when decoded.
func (b *bounder) open(batch []byte) (raw []byte, size int, err error) {
	raw = batch[batchHead:]
	if codec := kgo.CompressionCodecType(batch[atAttributes+1] & codecBits); codec != kgo.CodecNone && len(raw) > 0 {
		if raw, err = b.unpack.Decompress(raw, codec); err != nil {
			return nil, 0, fmt.Errorf("cannot be decompressed: %w", err)
		}
	}
	records, size, err := decodedSize(raw)
	if err == nil && records != int(int32(binary.BigEndian.Uint32(batch[atRecords:]))) {
		err = errMalformedBatch
	}
	return raw, size, err
}

// appendRebuilt appends a batch with other records, and with the bits of without cleared in its attributes.
func appendRebuilt(out, batch, records []byte, without byte) []byte {
	start := len(out)
	out = append(append(slices.Grow(out, batchHead+len(records)), batch[:batchHead]...), records...)
	added := out[start:]
	added[atAttributes+1] &^= without
	binary.BigEndian.PutUint32(added[atLength:], uint32(len(added)-atLength-4))
	binary.BigEndian.PutUint32(added[atCRC:], crc32.Checksum(added[atAttributes:], crcTable))
	return out
}

// unreadHeader is the header of the record that replaces an undecodable batch. Its value starts with a random word of this
// process, which no producer knows.
const unreadHeader = "unread"

var unreadWord = sync.OnceValue(rand.Text)

// appendUnread appends the replacement of a batch that is not decoded.
func appendUnread(out, batch []byte, why error) []byte {
	from, last := int64(binary.BigEndian.Uint64(batch)), max(int64(int32(binary.BigEndian.Uint32(batch[atLastDelta:]))), 0)
	if errors.Is(why, kgo.ErrMaxDecompress) && !errors.Is(why, errLargeBatch) {
		why = fmt.Errorf("decompresses to more than %d bytes", MaxDecompressedBytes)
	}
	value := fmt.Sprintf("%sbatch from offset %d to %d: %v; none of its records was read", unreadWord(), from, from+last, why)
	r := kmsg.Record{OffsetDelta: int32(last), Headers: []kmsg.Header{{Key: unreadHeader, Value: []byte(value)}}}
	record := r.AppendTo(nil)[1:] // without its first byte, the length, which is not set
	head := bytes.Clone(batch[:batchHead])
	binary.BigEndian.PutUint32(head[atRecords:], 1)
	return appendRebuilt(out, head, append(binary.AppendVarint(nil, int64(len(record))), record...), codecBits|controlBit)
}

// Unread returns the reason why a batch was not decoded, from the headers of the record that replaces it. It returns false
// for a record that a producer wrote. The replacement has the last offset of the batch, and neither key nor value.
func Unread(headers map[string][]byte) (why string, ok bool) {
	return strings.CutPrefix(string(headers[unreadHeader]), unreadWord())
}
