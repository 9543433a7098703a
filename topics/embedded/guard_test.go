package embedded_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// request returns an encoded request whose header has the given length.
func request(length uint32, key, version int16, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 1)         // correlation id
	b = append(b, 0xff, 0xff)         // no client id
	return append(b, []byte(rest)...) // the body
}

var hostileRequests = map[string][]byte{
	"unknown API key":      request(10, 32000, 0, ""),
	"negative API key":     request(10, -1, 0, ""),
	"negative version":     request(10, 3, -1, ""),
	"unsupported version":  request(10, 3, 9999, ""),
	"length above maximum": request(topics.MaxRequestBytes+1, 3, 0, ""),
	"length of 4 GiB":      request(1<<32-1, 3, 0, ""),
	"length below header":  request(9, 3, 0, ""),
	"HTTP POST of a page":  []byte("POST / HTTP/1.1\r\nHost: 127.0.0.1:9092\r\nContent-Length: 3\r\n\r\nabc"),
	"HTTP/2 preface":       []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	"TLS client hello":     {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0},
}

func TestBroker_ClosesConnectionsThatSendHostileRequests(t *testing.T) {
	s := start(t, config(t.TempDir()))
	createTopic(t, s.Kafka(1), "t")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, sent := range hostileRequests {
		conn := must.Get(net.Dial("tcp", s.Kafka(1).Brokers[0]))(t)
		must.Get(conn.Write(sent))(t)
		must.OK(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		var silent net.Error
		if n, err := io.Copy(io.Discard, conn); n != 0 || errors.As(err, &silent) && silent.Timeout() {
			t.Fatalf("%s: got %d bytes and %v, want a closed connection", name, n, err)
		}
		_ = conn.Close()
	}
	runtime.ReadMemStats(&after)
	expect.AtMost(t, after.TotalAlloc-before.TotalAlloc, 1<<20, "bytes that the requests made the broker allocate")
	produce(t, s.Kafka(1), "t", "a", "b")
	expect.Equal(t, len(consume(t, s.Kafka(1), "t", 2)), 2, "records: a and b")
}

func TestBroker_AnswersApiVersionsOfAnyVersion(t *testing.T) {
	s := start(t, config(t.TempDir()))
	conn := must.Get(net.Dial("tcp", s.Kafka(1).Brokers[0]))(t)
	defer conn.Close()
	body := "\x00" + "\x05test" + "\x041.0" + "\x00\xff\xff\xff\xff" + "\x00" // tags, client's name and version, cluster and node, tags
	must.Get(conn.Write(request(10+uint32(len(body)), 18, 99, body)))(t)
	must.OK(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer := make([]byte, 10)
	must.Get(io.ReadFull(conn, answer))(t)
	expect.Equal(t, binary.BigEndian.Uint16(answer[8:]), 35, "error code")
}

// FuzzGuard compares the output of the guard with the valid requests at the start of a stream.
func FuzzGuard(f *testing.F) {
	metadata := request(14, 3, 1, "\xff\xff\xff\xff")
	f.Add(append(bytes.Clone(metadata), metadata...), uint8(4))
	f.Add(append(bytes.Clone(metadata), hostileRequests["unknown API key"]...), uint8(1))
	for _, sent := range hostileRequests {
		f.Add(sent, uint8(7))
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		guarded := embedded.Guard(&pieces{Reader: bytes.NewReader(stream), size: int(piece) + 1})
		got, err := io.ReadAll(struct{ io.Reader }{guarded})
		want := validPrefix(stream)
		expect.Equal(t, string(got), string(want), "delivered of %x, %v", stream, err)
	})
}

// pieces is a connection that delivers a few bytes at a time.
type pieces struct {
	net.Conn
	io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

// validPrefix returns the requests of a stream before the first invalid one.
func validPrefix(stream []byte) []byte {
	rest := stream
	for len(rest) >= 14 {
		length := int(binary.BigEndian.Uint32(rest))
		req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(rest[4:])))
		version := int16(binary.BigEndian.Uint16(rest[6:]))
		if length < 10 || length > topics.MaxRequestBytes || req == nil || version < 0 || version > req.MaxVersion() && req.Key() != 18 {
			break
		}
		rest = rest[min(len(rest), 4+length):]
	}
	return stream[:len(stream)-len(rest)]
}
