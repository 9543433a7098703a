// Package faultnet opens connections to brokers that tests can hold and cut: what a stopped process, a hung network and
// an answer that gets lost look like to a broker.
//
//	n := faultnet.New()
//	kafka.Dial = n.Dial
//	n.Cut(kmsg.EndTxn, 5)         // every fifth is done by the broker, and its answer never comes
//	n.Alter(kmsg.EndTxn, 5, deny) // … or says something else
//	n.Hold()                      // nothing gets through, nothing is noticed …
//	n.Release()                   // … and then everything does
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

// Net is the connections opened through it. It is safe for concurrent use.
type Net struct {
	mu    sync.Mutex
	held  chan struct{} // closed when traffic may pass; nil: it may
	rules map[int16]*rule
}

// rule is what becomes of the answers to one kind of request.
type rule struct {
	every int                 // so many requests; 0: of none
	alter func(kmsg.Response) // nil: cut
	seen  int                 // requests
	hits  int                 // answers
}

// New returns a Net that disturbs nothing.
func New() *Net {
	return &Net{rules: map[int16]*rule{}}
}

// Cut closes the connection instead of handing on the answer of every n-th request of a kind; 0: of none any more.
func (n *Net) Cut(key kmsg.Key, every int) { n.Alter(key, every, nil) }

// Alter has f change the answer of every n-th request of a kind.
func (n *Net) Alter(key kmsg.Key, every int, f func(kmsg.Response)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rule(int16(key))
	r.every, r.alter = every, f
}

// Hits returns how many answers of a kind have been lost or altered.
func (n *Net) Hits(key kmsg.Key) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rule(int16(key)).hits
}

// rule returns the rule of a kind. mu is held.
func (n *Net) rule(key int16) *rule {
	if n.rules[key] == nil {
		n.rules[key] = &rule{}
	}
	return n.rules[key]
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
	return &conn{Conn: raw, net: n, closed: make(chan struct{}), doomed: map[int32]request{}}, nil
}

// request is one whose answer is to be lost or altered.
type request struct {
	key, version int16
	alter        func(kmsg.Response)
}

// requested counts a request, and tells whether something is to become of its answer.
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

	rest []byte // of an answer that is being read
}

// requestHead is size, API key, version, correlation id.
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

// alter changes the answer in rest.
func (c *conn) alter(q request) error {
	answer := kmsg.ResponseForKey(q.key)
	answer.SetVersion(q.version)
	head := 8
	if answer.IsFlexible() {
		head++ // no tags
	}
	if err := answer.ReadFrom(c.rest[head:]); err != nil {
		return fmt.Errorf("read answer to %s: %w", kmsg.NameForKey(q.key), err)
	}
	q.alter(answer)
	c.rest = answer.AppendTo(c.rest[:head])
	binary.BigEndian.PutUint32(c.rest, uint32(len(c.rest)-4))
	return nil
}

// maxAnswer is more than any client here asks for.
const maxAnswer = 256 << 20

// Close closes the connection, also one that is held.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
