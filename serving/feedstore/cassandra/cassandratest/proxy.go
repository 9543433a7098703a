// Package cassandratest makes a Cassandra node look slow or overloaded to those who ask it through a Proxy. What is away or
// hangs needs none: the node itself is killed or stopped.
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
)

// Proxy stands before a node, and can hold back what it answers: the rest of the same connection passes an answer that is
// held, as it does when a node takes long over one read. It knows the frames of the protocol's version 5, no more. Its
// methods may be called from any number of goroutines.
type Proxy struct {
	t    *testing.T
	l    net.Listener
	node string
	slow atomic.Bool
	seen atomic.Int64 // answers while it is slow
	held atomic.Int64 // answers that came late
	line line
	wg   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// What a slow node does: LateBy more for one answer in LateEvery.
const (
	LateBy    = 500 * time.Millisecond
	LateEvery = 10
)

// Before starts a proxy before the node at an address. It ends with the test.
func Before(t *testing.T, node string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// Address is where the node is asked through the proxy.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// Slow has one answer in LateEvery come LateBy later, or no more.
func (p *Proxy) Slow(slow bool) { p.slow.Store(slow) }

// Overload has the node answer so many times a second and no more: answers wait in line, each for Longest at most. 0: it
// answers as it does.
func (p *Proxy) Overload(perSecond int) { p.line.open(perSecond) }

// Held is how many answers have come late since it was asked last.
func (p *Proxy) Held() int64 { return p.held.Swap(0) }

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		node, err := net.Dial("tcp", p.node)
		if err != nil { // it is dead
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
			if err := p.answer(client, bufio.NewReader(node)); !left(err) {
				p.t.Errorf("proxy: %v", err)
			}
		})
	}
}

// left tells whether an error only says that a node was killed, amid an answer perhaps, or that a client has left.
func left(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// answer hands on what a node says: frames as they are until it is ready, then segments.
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
		segment, whole, err := readSegment(node)
		if err != nil {
			return err
		}
		late := time.Duration(0)
		if whole {
			late = p.late()
		}
		if err := out.write(segment, late); err != nil {
			return err
		}
	}
}

// late is how long the next answer is held.
func (p *Proxy) late() time.Duration {
	late := p.line.wait(time.Now())
	if p.slow.Load() && p.seen.Add(1)%LateEvery == 0 {
		late += LateBy
	}
	if late > 0 {
		p.held.Add(1)
	}
	return late
}

// Longest is how long an overloaded node takes at most: what waits longer goes first.
const Longest = time.Second

// line is where the answers of an overloaded node wait.
type line struct {
	mu   sync.Mutex
	each time.Duration // 0: there is none
	next time.Time     // the first free place
}

func (l *line) open(perSecond int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each, l.next = 0, time.Time{}
	if perSecond > 0 {
		l.each = time.Second / time.Duration(perSecond)
	}
}

// wait takes a place in the line, and returns how long it takes until that is at its head.
func (l *line) wait(now time.Time) time.Duration {
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

// readSegment reads a segment: 17 bits of length, one that says whether it holds whole envelopes, a checksum (3), the
// payload, a checksum (4).
func readSegment(r *bufio.Reader) (segment []byte, whole bool, err error) {
	head, err := r.Peek(6)
	if err != nil {
		return nil, false, err
	}
	bits := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if bits>>18 != 0 {
		return nil, false, fmt.Errorf("%x is no head of a segment", head)
	}
	segment = make([]byte, 6+bits&(1<<17-1)+4)
	_, err = io.ReadFull(r, segment)
	return segment, bits>>17&1 == 1, err
}

// lateWriter writes pieces at once, or later, while others pass.
type lateWriter struct {
	mu sync.Mutex
	to io.Writer
	wg sync.WaitGroup
}

func (w *lateWriter) write(piece []byte, late time.Duration) error {
	if late > 0 {
		w.wg.Go(func() {
			time.Sleep(late)
			_ = w.write(piece, 0) // the connection may be gone
		})
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(piece)
	return err
}
