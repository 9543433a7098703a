package cassandra_test

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

// proxy stands before a node, and can hold back a tenth of what it answers: the rest of the same connection passes it,
// as it does when a node takes long over one read. It knows the frames of the protocol's version 5, no more.
type proxy struct {
	t    *testing.T
	l    net.Listener
	node string
	slow atomic.Bool
	seen atomic.Int64 // segments answered
	held atomic.Int64 // … of which late
	wg   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

const (
	lateBy    = 500 * time.Millisecond
	lateEvery = 10
)

// before starts a proxy, which ends with the test.
func before(t *testing.T, node string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, node: node}
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

func (p *proxy) address() string { return p.l.Addr().String() }

func (p *proxy) accept() {
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
			if err := p.answer(client, bufio.NewReader(node)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				var other net.Error
				if !errors.As(err, &other) { // of the network: a node was killed, a client has left
					p.t.Errorf("proxy: %v", err)
				}
			}
		})
	}
}

// answer hands on what a node says: frames as they are until it is ready, then segments.
func (p *proxy) answer(client io.Writer, node *bufio.Reader) error {
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
		if p.slow.Load() && whole && p.seen.Add(1)%lateEvery == 0 {
			late = lateBy
			p.held.Add(1)
		}
		if err := out.write(segment, late); err != nil {
			return err
		}
	}
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
