package embedded

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/topics"
)

// guardedListener accepts connections whose requests are checked before the broker reads them. kfake allocates the whole
// length of a request as soon as it has read the length. For an unknown API key it panics in its own goroutine, where this
// package cannot recover. A web page can trigger both: "POST" read as a length is 1.35 GB.
type guardedListener struct{ net.Listener }

// Accept returns the next connection as a *guardedConn.
func (l guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &guardedConn{Conn: conn}, nil
}

const (
	lengthBytes = 4
	headerBytes = 10 // API key 2, version 2, correlation id 4, length of the client id 2
)

// guardedConn delivers requests with valid headers. Read returns an error at the first invalid header, and the broker then
// closes the connection. Reads must not be concurrent.
type guardedConn struct {
	net.Conn

	header  [lengthBytes + headerBytes]byte
	checked []byte // part of header that is not yet delivered
	body    int    // bytes of the request after its header that are not yet delivered
}

// Read returns bytes of at most one request.
func (c *guardedConn) Read(p []byte) (int, error) {
	if len(c.checked) == 0 && c.body == 0 {
		if err := c.readHeader(); err != nil {
			return 0, err
		}
	}
	if len(c.checked) > 0 {
		n := copy(p, c.checked)
		c.checked = c.checked[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.body)])
	c.body -= n
	return n, err
}

func (c *guardedConn) readHeader() error {
	if _, err := io.ReadFull(c.Conn, c.header[:]); err != nil {
		return err
	}
	if err := checkHeader(c.header[:]); err != nil {
		return err
	}
	c.checked, c.body = c.header[:], int(binary.BigEndian.Uint32(c.header[:]))-headerBytes
	return nil
}

// checkHeader returns an error unless kfake can read and answer a request with this header. kfake answers any version of
// ApiVersions, because clients use it to find the supported versions (KIP-511).
func checkHeader(header []byte) error {
	length := binary.BigEndian.Uint32(header)
	if length < headerBytes || length > topics.MaxRequestBytes {
		return fmt.Errorf("request length: %d is out of range [%d, %d]", length, headerBytes, topics.MaxRequestBytes)
	}
	key, version := int16(binary.BigEndian.Uint16(header[4:])), int16(binary.BigEndian.Uint16(header[6:]))
	known := kmsg.RequestForKey(key)
	if known == nil {
		return fmt.Errorf("request API key: %d is not supported", key)
	}
	if version < 0 || version > known.MaxVersion() && kmsg.Key(key) != kmsg.ApiVersions {
		return fmt.Errorf("request version: %d of API key %d is out of range [0, %d]", version, key, known.MaxVersion())
	}
	return nil
}
