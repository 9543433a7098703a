// Package faultnet opens connections to brokers that tests can hold and cut: what a stopped process, a hung network and
// an answer that gets lost look like to a broker.
//
//	n := faultnet.New()
//	kafka.Dial = n.Dial
//	n.Cut(kmsg.EndTxn, 5)   // every fifth is done by the broker, and its answer never comes
//	n.Hold()                // nothing gets through, nothing is noticed …
//	n.Release()             // … and then everything does
package faultnet

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Net is the connections opened through it. It is safe for concurrent use.
type Net struct {
	mu    sync.Mutex
	held  chan struct{} // closed when traffic may pass; nil: it may
	every map[int16]int // by API key: cut every so many answers
	seen  map[int16]int // requests
	cuts  map[int16]int
}

// New returns a Net that disturbs nothing.
func New() *Net {
	return &Net{every: map[int16]int{}, seen: map[int16]int{}, cuts: map[int16]int{}}
}

// Cut closes the connection instead of handing on the answer of every n-th request of a kind; 0: of none any more.
func (n *Net) Cut(key kmsg.Key, every int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.every[int16(key)] = every
}

// Cuts returns how many answers of a kind have been lost.
func (n *Net) Cuts(key kmsg.Key) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts[int16(key)]
}

// Hold stops all traffic, without closing a connection, until Release. Dialling waits, too.
func (n *Net) Hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held = make(chan struct{})
	}
}

// Release ends Hold.
func (n *Net) Release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
}

// pass waits for Release if traffic is held, or for done.
func (n *Net) pass(done <-chan struct{}) error {
	n.mu.Lock()
	held := n.held
	n.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-done:
		return net.ErrClosed
	}
}

// Dial opens a TCP connection.
func (n *Net) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := n.pass(ctx.Done()); err != nil {
		return nil, context.Cause(ctx)
	}
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, net: n, closed: make(chan struct{}), doomed: map[int32]int16{}}, nil
}

// requested counts a request, and tells whether its answer is to be lost.
func (n *Net) requested(key int16) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[key]++
	return n.every[key] > 0 && n.seen[key]%n.every[key] == 0
}

func (n *Net) cut(key int16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[key]++
}

// conn is one connection. Clients write each request with one call.
type conn struct {
	net.Conn
	net    *Net
	once   sync.Once
	closed chan struct{}

	mu     sync.Mutex
	doomed map[int32]int16 // requests whose answer is to be lost, by correlation id: their API key

	rest []byte // of an answer that is being read
}

// requestHead is size, API key, version, correlation id.
const requestHead = 4 + 2 + 2 + 4

func (c *conn) Write(p []byte) (int, error) {
	if err := c.net.pass(c.closed); err != nil {
		return 0, err
	}
	if len(p) >= requestHead && int(binary.BigEndian.Uint32(p))+4 == len(p) {
		if key := int16(binary.BigEndian.Uint16(p[4:])); c.net.requested(key) {
			c.mu.Lock()
			c.doomed[int32(binary.BigEndian.Uint32(p[8:]))] = key
			c.mu.Unlock()
		}
	}
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next reads an answer, and hands it on or cuts the connection.
func (c *conn) next() error {
	head := make([]byte, 8) // size, correlation id
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head))
	if size < 4 || size > maxAnswer {
		return errors.New("answer of a length that cannot be")
	}
	c.rest = append(head, make([]byte, size-4)...)
	if _, err := io.ReadFull(c.Conn, c.rest[8:]); err != nil {
		return err
	}
	if err := c.net.pass(c.closed); err != nil {
		return err
	}
	c.mu.Lock()
	key, doomed := c.doomed[int32(binary.BigEndian.Uint32(head[4:]))]
	c.mu.Unlock()
	if !doomed {
		return nil
	}
	c.net.cut(key)
	c.rest = nil
	return errors.Join(io.ErrUnexpectedEOF, c.Close())
}

// maxAnswer is more than any client here asks for.
const maxAnswer = 256 << 20

// Close closes the connection, also one that is held.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
