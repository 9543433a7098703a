package embedded

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/topics"
)

// guardedListener accepts connections whose requests are checked before the broker sees them. kfake allocates a request's
// whole length as soon as it has read it, and panics on an API key that it does not know, in a goroutine of its own that
// this package cannot recover. A web page can send both: "POST" as a length is 1.35 GB.
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

// guardedConn passes on valid request headers and what follows them. Read fails at the first other one; the broker then
// closes the connection. Reads must not be concurrent.
type guardedConn struct {
	net.Conn

	header  [lengthBytes + headerBytes]byte
	checked []byte // of header, not yet passed on
	body    int    // bytes of the request behind its header, not yet passed on
}

// Read returns bytes of one request at most.
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

// checkHeader fails unless kfake can read the request with this header and answer it. Of ApiVersions it answers any
// version: that is how clients find out which ones there are (KIP-511).
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
