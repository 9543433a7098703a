// Package faultnet opens connections to brokers that tests can block and cut. This simulates a paused process, a
// hanging network, or a lost response.
//
//	n := faultnet.New()
//	kafka.Dial = n.Dial
//	n.Cut(kmsg.EndTxn, 5)         // the broker processes every fifth request, but its response is lost
//	n.Alter(kmsg.EndTxn, 5, deny) // … or has another content
//	n.Hold()                      // all traffic stops, without an error …
//	n.Release()                   // … and continues
package faultnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Net is a set of connections. It is safe for concurrent use.
type Net struct {
	mu    sync.Mutex
	held  chan struct{} // closed by Release; nil: traffic is not held
	rules map[int16]*rule
}

// rule defines the fault for the responses to one kind of request.
type rule struct {
	every int                 // affects every n-th request; 0: none
	alter func(kmsg.Response) // nil: cut the connection
	seen  int                 // number of requests
	hits  int                 // number of affected responses
}

// New returns a Net without faults.
func New() *Net {
	return &Net{rules: map[int16]*rule{}}
}

// Cut closes the connection instead of delivering the response to every n-th request of a kind; 0: to none.
func (n *Net) Cut(key kmsg.Key, every int) { n.Alter(key, every, nil) }

// Alter makes f change the response to every n-th request of a kind.
func (n *Net) Alter(key kmsg.Key, every int, f func(kmsg.Response)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rule(int16(key))
	r.every, r.alter = every, f
}

// Hits returns how many responses of a kind have been lost or altered.
func (n *Net) Hits(key kmsg.Key) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rule(int16(key)).hits
}

// rule returns the rule of a kind. The caller must hold mu.
func (n *Net) rule(key int16) *rule {
	if n.rules[key] == nil {
		n.rules[key] = &rule{}
	}
	return n.rules[key]
}

// Hold stops all traffic until Release, without closing a connection. Dialing blocks, too.
func (n *Net) Hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held = make(chan struct{})
	}
}

// Release resumes the traffic that Hold stopped.
func (n *Net) Release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
}

// pass blocks while traffic is held, or until done is closed.
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
	return &conn{Conn: raw, net: n, closed: make(chan struct{}), doomed: map[int32]request{}}, nil
}

// request is a request whose response will be lost or altered.
type request struct {
	key, version int16
	alter        func(kmsg.Response)
}

// requested counts a request, and reports whether its response will be lost or altered.
func (n *Net) requested(q *request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rule(q.key)
	r.seen++
	q.alter = r.alter
	return r.every > 0 && r.seen%r.every == 0
}

func (n *Net) hit(key int16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule(key).hits++
}

// conn is one connection. Clients write each request with one call.
type conn struct {
	net.Conn
	net    *Net
	once   sync.Once
	closed chan struct{}

	mu     sync.Mutex
	doomed map[int32]request // by correlation id

	rest []byte // unread bytes of the current response
}

// requestHead is the length of size, API key, version and correlation id.
const requestHead = 4 + 2 + 2 + 4

func (c *conn) Write(p []byte) (int, error) {
	if err := c.net.pass(c.closed); err != nil {
		return 0, err
	}
	if len(p) >= requestHead && int(binary.BigEndian.Uint32(p))+4 == len(p) {
		q := request{key: int16(binary.BigEndian.Uint16(p[4:])), version: int16(binary.BigEndian.Uint16(p[6:]))}
		if c.net.requested(&q) {
			c.mu.Lock()
			c.doomed[int32(binary.BigEndian.Uint32(p[8:]))] = q
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

// next reads a response, and keeps it, alters it, or cuts the connection.
func (c *conn) next() error {
	head := make([]byte, 8) // size, correlation id
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head))
	if size < 4 || size > maxResponse {
		return errors.New("read response: invalid length")
	}
	c.rest = append(head, make([]byte, size-4)...)
	if _, err := io.ReadFull(c.Conn, c.rest[8:]); err != nil {
		return err
	}
	if err := c.net.pass(c.closed); err != nil {
		return err
	}
	c.mu.Lock()
	q, doomed := c.doomed[int32(binary.BigEndian.Uint32(head[4:]))]
	c.mu.Unlock()
	if !doomed {
		return nil
	}
	c.net.hit(q.key)
	if q.alter != nil {
		return c.alter(q)
	}
	c.rest = nil
	return errors.Join(io.ErrUnexpectedEOF, c.Close())
}

// alter changes the response in rest.
func (c *conn) alter(q request) error {
	answer := kmsg.ResponseForKey(q.key)
	answer.SetVersion(q.version)
	head := 8
	if answer.IsFlexible() {
		head++ // no tags
	}
	if err := answer.ReadFrom(c.rest[head:]); err != nil {
		return fmt.Errorf("read response to %s: %w", kmsg.NameForKey(q.key), err)
	}
	q.alter(answer)
	c.rest = answer.AppendTo(c.rest[:head])
	binary.BigEndian.PutUint32(c.rest, uint32(len(c.rest)-4))
	return nil
}

// maxResponse exceeds every response in tests.
const maxResponse = 256 << 20

// Close closes the connection, even while traffic is held.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
