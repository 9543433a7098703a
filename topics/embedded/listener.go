package embedded

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// connBytes is the size of each of the two buffers of a connection in memory.
const connBytes = 32 << 10

// listener accepts connections over TCP, and connections in memory from this process. The latter need no system calls, which are a
// quarter of the CPU time of a product at rest.
type listener struct {
	net.Listener // TCP
	memory       *bufconn.Listener
	conns        chan net.Conn
	closed       chan struct{}
	close        func() error
}

func newListener(tcp net.Listener) *listener {
	l := &listener{Listener: tcp, memory: bufconn.Listen(connBytes), conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return errors.Join(tcp.Close(), l.memory.Close())
	})
	go l.forward(tcp)
	go l.forward(l.memory)
	return l
}

func (l *listener) forward(from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			_ = l.Close()
			return
		}
		select {
		case l.conns <- conn:
		case <-l.closed:
			_ = conn.Close()
		}
	}
}

// Accept returns the next connection of either kind, or net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close stops both kinds of connections.
func (l *listener) Close() error { return l.close() }

// dial connects this process to the broker in memory. It uses TCP for any other address, and for a broker that was started again.
func (l *listener) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address == l.Addr().String() {
		if conn, err := l.memory.DialContext(ctx); err == nil {
			return memoryConn{conn}, nil
		}
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// memoryConn returns the error of a closed network connection, which clients retry.
type memoryConn struct{ net.Conn }

// Write implements net.Conn.
func (c memoryConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}
