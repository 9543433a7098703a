package topics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// testRecord returns an encoded record of a batch, with the given number of empty headers.
func testRecord(offset int, value []byte, headers int) []byte {
	body := binary.AppendVarint([]byte{0, 0}, int64(offset))
	body = append(body, 1) // no key
	body = append(binary.AppendVarint(body, int64(len(value))), value...)
	body = append(binary.AppendVarint(body, int64(headers)), make([]byte, 2*headers)...)
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

// testBatch returns an encoded batch at offset 100.
func testBatch(t testing.TB, codec kgo.CompressionCodec, attributes int16, claimed int, records ...[]byte) []byte {
	t.Helper()
	raw := bytes.Join(records, nil)
	compressor := must.Get(kgo.DefaultCompressor(codec))(t)
	if compressor != nil {
		var kind kgo.CompressionCodecType
		raw, kind = compressor.Compress(new(bytes.Buffer), raw)
		attributes |= int16(kind)
	}
	b := kmsg.RecordBatch{
		FirstOffset: 100, Magic: 2, Attributes: attributes, LastOffsetDelta: int32(claimed) - 1, FirstTimestamp: 5, MaxTimestamp: 5,
		ProducerID: 7, NumRecords: int32(claimed), Records: raw,
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crcTable))
	return b.AppendTo(nil)
}

func newBounder(t testing.TB) *bounder {
	t.Helper()
	unpack := must.Get(decompressor())(t)
	return &bounder{unpack: unpack, budget: MaxDecompressedBytes}
}

// decoded returns the records that a client decodes from batches.
func decoded(t testing.TB, batches []byte) []*kgo.Record {
	t.Helper()
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches, p.HighWatermark = batches, 1<<40
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: 0, Topic: "t"}, &p, kgo.DefaultDecompressor(), nil)
	must.OK(t, fetched.Err)
	return fetched.Records
}

// why returns the reason in the replacement of a single batch, or "" if the batch was not replaced.
func why(t testing.TB, batches []byte) string {
	t.Helper()
	records := decoded(t, batches)
	if len(records) != 1 {
		return ""
	}
	headers := map[string][]byte{}
	for _, h := range records[0].Headers {
		headers[h.Key] = h.Value
	}
	text, _ := Unread(headers)
	return text
}

func TestBound_KeepsRecordsOfEveryCodec(t *testing.T) {
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		batch := testBatch(t, codec, 0, 3, testRecord(0, []byte("a"), 0), testRecord(1, nil, MaxHeaders), testRecord(2, make([]byte, 1000), 2))
		cut := batch[:len(batch)/2]
		got := newBounder(t).bound(bytes.Join([][]byte{batch, cut}, nil))
		expect.True(t, bytes.HasSuffix(got, cut), "%v: the truncated batch is kept", codec)
		records := decoded(t, got[:len(got)-len(cut)])
		must.Equal(t, len(records), 3, "%v: records", codec)
		for i, want := range []struct{ value, headers int }{{1, 0}, {0, MaxHeaders}, {1000, 2}} {
			if r := records[i]; r.Offset != int64(100+i) || len(r.Value) != want.value || len(r.Headers) != want.headers || r.ProducerID != 7 {
				t.Errorf("%v: record %d has offset %d, %d bytes, %d headers", codec, i, r.Offset, len(r.Value), len(r.Headers))
			}
		}
	}
}

func TestBound_ReplacesUndecodableBatches(t *testing.T) {
	many := bytes.Repeat(testRecord(0, nil, 0), MaxDecodedBytes/recordCost+1)
	broken := testRecord(0, []byte("value"), 0)
	broken[len(broken)-1] = 2 // the header count is 1, but there is no header
	for name, c := range map[string]struct {
		batch []byte
		want  string
	}{
		"record with many headers":     {testBatch(t, kgo.GzipCompression(), 0, 1, testRecord(0, nil, MaxHeaders+1)), "1025 headers"},
		"the same without compression": {testBatch(t, kgo.NoCompression(), 0, 1, testRecord(0, nil, MaxHeaders+1)), "1025 headers"},
		"many records":                 {testBatch(t, kgo.GzipCompression(), 0, MaxDecodedBytes/recordCost+1, many), "bytes of memory"},
		"many bytes": {testBatch(t, kgo.ZstdCompression(), 0, 1, testRecord(0, make([]byte, MaxDecompressedBytes), 0)),
			"decompresses to more than 67108864 bytes"},
		"fewer records than claimed": {testBatch(t, kgo.SnappyCompression(), 0, 2, testRecord(0, nil, 0)), "malformed"},
		"more records than claimed":  {testBatch(t, kgo.NoCompression(), 0, 1, testRecord(0, nil, 0), testRecord(1, nil, 0)), "malformed"},
		"truncated record":           {testBatch(t, kgo.NoCompression(), 0, 1, broken), "malformed"},
		"no compressed bytes":        {testBatch(t, kgo.NoCompression(), int16(kgo.CodecGzip), 1, []byte("not gzip")), "cannot be decompressed"},
		"of an aborted transaction":  {testBatch(t, kgo.GzipCompression(), 0x10, 1, testRecord(0, nil, MaxHeaders+1)), "headers"},
		"as a control batch":         {testBatch(t, kgo.GzipCompression(), 0x20, 1, testRecord(0, nil, MaxHeaders+1)), "headers"},
	} {
		got := newBounder(t).bound(c.batch)
		text, records := why(t, got), decoded(t, got)
		claimed := int64(int32(binary.BigEndian.Uint32(c.batch[atRecords:])))
		if !strings.Contains(text, c.want) || !strings.HasPrefix(text, "batch from offset 100 to ") {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		if len(records) == 1 && (records[0].Offset != 100+claimed-1 || records[0].ProducerID != 7 || len(got) > 1000) {
			t.Errorf("%s: record at offset %d of producer %d, %d bytes", name, records[0].Offset, records[0].ProducerID, len(got))
		}
	}
}

// The batches of one response together take a bounded amount of memory. One batch is always included.
func TestBound_OmitsBatchesBeyondTheBudget(t *testing.T) {
	const each = MaxDecompressedBytes * 2 / 3
	batch := testBatch(t, kgo.GzipCompression(), 0, 1, testRecord(0, make([]byte, each), 0))
	small := testBatch(t, kgo.GzipCompression(), 0, 1, testRecord(0, nil, 0))
	b := newBounder(t)
	for i, c := range []struct {
		in   []byte
		want int
	}{{append(bytes.Clone(batch), batch...), 1}, {batch, 0}, {small, 1}, {append(bytes.Clone(batch), small...), 0}} {
		expect.Equal(t, len(decoded(t, b.bound(c.in))), c.want, "partition %d: records", i)
	}
	full := testBatch(t, kgo.GzipCompression(), 0, 1, testRecord(0, make([]byte, MaxDecompressedBytes-100), 0))
	expect.Equal(t, len(decoded(t, newBounder(t).bound(full))), 1, "batches read: a single batch of maximum size is not omitted")
}

func TestUnread_RejectsForgedHeader(t *testing.T) {
	for _, forged := range []map[string][]byte{nil, {unreadHeader: nil}, {unreadHeader: []byte("batch from offset 0 to 9")}} {
		if why, ok := Unread(forged); ok {
			t.Errorf("%q was read as %q", forged, why)
		}
	}
}

// For any response of a broker, the batches that sarama gets are bounded, and sarama can decode a complete batch.
func FuzzBound(f *testing.F) {
	f.Add(testBatch(f, kgo.SnappyCompression(), 0, 2, testRecord(0, []byte("a"), 1), testRecord(1, nil, 0)))
	f.Add(testBatch(f, kgo.ZstdCompression(), 0, 1, testRecord(0, nil, MaxHeaders+1)))
	f.Add(testBatch(f, kgo.NoCompression(), 0x30, 1, testRecord(0, []byte("x"), 0)))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= batchHead { // make the checksum valid
			binary.BigEndian.PutUint32(data[atLength:], uint32(len(data)-12))
			data[atMagic] = 2
			binary.BigEndian.PutUint32(data[atCRC:], crc32.Checksum(data[atAttributes:], crcTable))
		}
		out := newBounder(t).bound(data)
		expect.AtMost(t, len(out), len(data)+MaxDecompressedBytes, "bytes of %d", len(data))
		if len(data) < batchHead {
			return
		}
		records, _, err := decodedSize(out[batchHead:])
		if claimed := int(int32(binary.BigEndian.Uint32(out[atRecords:]))); err != nil || records != claimed || out[atAttributes+1]&codecBits != 0 {
			t.Fatalf("%d records of %d, attributes %x, %v", records, claimed, out[atAttributes:atAttributes+2], err)
		}
	})
}

// A response to another request is unchanged, also if it is read in small pieces. A response with an invalid length ends the
// connection.
func TestFetchConn_InvalidLengthEndsTheConnection(t *testing.T) {
	c := &fetchConn{Conn: readConn{bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1})}, fetches: map[int32]int16{}}
	for range 2 {
		if n, err := c.Read(make([]byte, 10)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v, want an error", n, err)
		}
	}
	whole := append([]byte{0, 0, 0, 9, 0, 0, 0, 2}, "hello"...)
	c = &fetchConn{Conn: readConn{bytes.NewReader(append(whole, whole...))}, fetches: map[int32]int16{}}
	var got []byte
	for piece := make([]byte, 3); ; {
		n, err := c.Read(piece)
		got = append(got, piece[:n]...)
		if err != nil {
			break
		}
	}
	expect.NoDiff(t, got, append(bytes.Clone(whole), whole...), "read bytes")
}

// readConn is a read-only connection.
type readConn struct{ *bytes.Reader }

func (readConn) Write([]byte) (int, error)        { return 0, errors.ErrUnsupported }
func (readConn) Close() error                     { return nil }
func (readConn) LocalAddr() net.Addr              { return nil }
func (readConn) RemoteAddr() net.Addr             { return nil }
func (readConn) SetDeadline(time.Time) error      { return nil }
func (readConn) SetReadDeadline(time.Time) error  { return nil }
func (readConn) SetWriteDeadline(time.Time) error { return nil }
