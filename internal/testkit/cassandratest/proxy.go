// Package cassandratest makes a Cassandra node appear slow or overloaded to clients that connect through a Proxy. To test a
// node that is down or hangs, kill or pause the node itself.
package cassandratest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Proxy forwards connections to a node and can delay the node's answers. Other answers on the same connection overtake a
// delayed one, as when a node takes long for one read. Proxy supports only frames of version 5 of the protocol. Its methods
// are safe for concurrent use.
type Proxy struct {
	t     *testing.T
	l     net.Listener
	node  string
	slow  atomic.Bool
	seen  atomic.Int64 // answers while it is slow
	held  atomic.Int64 // delayed answers
	queue queue
	wg    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// A slow node answers one in LateEvery requests LateBy later.
const (
	LateBy    = 500 * time.Millisecond
	LateEvery = 10
)

// StartProxy starts a proxy for the node at an address. The proxy stops when the test ends.
func StartProxy(t *testing.T, node string) *Proxy {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &Proxy{t: t, l: l, node: node}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// Slow turns on or off that one in LateEvery answers is LateBy late.
func (p *Proxy) Slow(slow bool) { p.slow.Store(slow) }

// Overload limits the node to perSecond answers per second. Further answers are queued, each for at most Longest. 0 removes
// the limit.
func (p *Proxy) Overload(perSecond int) { p.queue.setRate(perSecond) }

// Held returns the number of delayed answers since the last call.
func (p *Proxy) Held() int64 { return p.held.Swap(0) }

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		node, err := net.Dial("tcp", p.node)
		if err != nil { // the node is down
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, node)
		p.mu.Unlock()
		end := func() { _, _ = client.Close(), node.Close() }
		p.wg.Go(func() {
			defer end()
			_, _ = io.Copy(node, client)
		})
		p.wg.Go(func() {
			defer end()
			if err := p.answer(client, bufio.NewReader(node)); !isDisconnect(err) {
				p.t.Errorf("proxy: %v", err)
			}
		})
	}
}

// isDisconnect reports whether an error only means that the node was killed, perhaps during an answer, or that the client has
// disconnected.
func isDisconnect(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// answer forwards the node's answers: frames without a delay until READY, then segments.
func (p *Proxy) answer(client io.Writer, node *bufio.Reader) error {
	out := &lateWriter{to: client}
	defer out.wg.Wait()
	for ready := false; !ready; {
		frame, opcode, err := readFrame(node)
		if err != nil {
			return err
		}
		if err := out.write(frame, 0); err != nil {
			return err
		}
		ready = opcode == 0x02 // READY
	}
	for {
		segment, complete, err := readSegment(node)
		if err != nil {
			return err
		}
		late := time.Duration(0)
		if complete {
			late = p.late()
		}
		if err := out.write(segment, late); err != nil {
			return err
		}
	}
}

// late returns the delay of the next answer.
func (p *Proxy) late() time.Duration {
	late := p.queue.wait(time.Now())
	if p.slow.Load() && p.seen.Add(1)%LateEvery == 0 {
		late += LateBy
	}
	if late > 0 {
		p.held.Add(1)
	}
	return late
}

// Longest is the maximum delay of an overloaded node. An answer that would wait longer overtakes the queue.
const Longest = time.Second

// queue is the queue for the answers of an overloaded node.
type queue struct {
	mu   sync.Mutex
	each time.Duration // 0: no limit
	next time.Time     // the first free slot
}

func (l *queue) setRate(perSecond int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each, l.next = 0, time.Time{}
	if perSecond > 0 {
		l.each = time.Second / time.Duration(perSecond)
	}
}

// wait takes a slot in the queue and returns the time until that slot.
func (l *queue) wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == 0 {
		return 0
	}
	if l.next.Before(now) {
		l.next = now
	}
	late := l.next.Sub(now)
	if late > Longest {
		return Longest
	}
	l.next = l.next.Add(l.each)
	return late
}

// readFrame reads an envelope: version, flags, stream (2), opcode, length (4), body.
func readFrame(r *bufio.Reader) (frame []byte, opcode byte, err error) {
	head, err := r.Peek(9)
	if err != nil {
		return nil, 0, err
	}
	frame = make([]byte, 9+int(binary.BigEndian.Uint32(head[5:])))
	_, err = io.ReadFull(r, frame)
	return frame, frame[4], err
}

// readSegment reads a segment: 17 bits of length, a bit that is set if the segment contains complete envelopes, a checksum (3),
// the payload, a checksum (4).
func readSegment(r *bufio.Reader) (segment []byte, complete bool, err error) {
	head, err := r.Peek(6)
	if err != nil {
		return nil, false, err
	}
	bits := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if bits>>18 != 0 {
		return nil, false, fmt.Errorf("%x is not the header of a segment", head)
	}
	segment = make([]byte, 6+bits&(1<<17-1)+4)
	_, err = io.ReadFull(r, segment)
	return segment, bits>>17&1 == 1, err
}

// lateWriter writes pieces immediately, or later while others overtake them.
type lateWriter struct {
	mu sync.Mutex
	to io.Writer
	wg sync.WaitGroup
}

func (w *lateWriter) write(piece []byte, late time.Duration) error {
	if late > 0 {
		w.wg.Go(func() {
			time.Sleep(late)
			_ = w.write(piece, 0) // the connection may be closed
		})
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(piece)
	return err
}
