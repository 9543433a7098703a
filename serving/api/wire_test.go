package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// pipes is a listener whose connections have no buffer: a side that does not read blocks the other. With synctest, time
// advances when all goroutines wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
	case <-p.closed:
		t.Fatal("the server accepts no connections")
	}
	return ours
}

// wire is a running server on pipes.
type wire struct {
	*Server
	pipes *pipes
	stop  context.CancelFunc
	ended chan error
}

// onWire runs f with a server in a synctest bubble, and then stops the server.
func onWire(t *testing.T, f *fakes, change func(*Config, *Deps), test func(t *testing.T, w *wire)) {
	t.Helper()
	s := listen(t, f, change)
	must.OK(t, s.Close())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := &wire{Server: s, stop: cancel, ended: make(chan error, 1),
			pipes: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}}
		s.listener = w.pipes
		go func() { w.ended <- s.Run(ctx) }()
		test(t, w)
		cancel()
		<-w.ended
		close(w.ended)
		synctest.Wait()
	})
}

// send opens a connection and writes text to it.
func (w *wire) send(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := w.pipes.dial(t)
	must.Get(io.WriteString(conn, text))(t)
	return conn
}

// get sends a request and returns the connection and the answer's header. The body is unread.
func (w *wire) get(t *testing.T, path string) (net.Conn, *http.Response) {
	t.Helper()
	conn := w.send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return conn, readAnswer(t, conn)
}

func readAnswer(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	return must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
}

func (w *wire) code(t *testing.T, path string) int {
	t.Helper()
	conn, res := w.get(t, path)
	defer conn.Close()
	return res.StatusCode
}

// closedAfter waits until the server has closed conn, and returns the time that took and the bytes received.
func closedAfter(t *testing.T, conn net.Conn) (time.Duration, string) {
	t.Helper()
	start := time.Now()
	got, err := io.ReadAll(conn)
	if err != nil && err != io.ErrClosedPipe {
		t.Fatal(err)
	}
	return time.Since(start), string(got)
}

func TestServer_ClosesSlowHeader(t *testing.T) {
	onWire(t, &fakes{}, nil, func(t *testing.T, w *wire) {
		conn := w.send(t, "GET /healthz HTTP/1.1\r\nHost: loc")
		took, got := closedAfter(t, conn)
		expect.Equal(t, took, w.cfg.HeaderTimeout, "time until the connection is closed")
		expect.Equal(t, got, "", "answer")
	})
}

// A sender that keeps sending a little is disconnected like one that has stopped.
func TestServer_RejectsSlowBody(t *testing.T) {
	for path, kind := range map[string]string{"/v1/events": "application/x-ndjson", "/v1/features": "application/json"} {
		t.Run(path, func(t *testing.T) {
			f := &fakes{}
			onWire(t, f, nil, func(t *testing.T, w *wire) {
				start := time.Now()
				conn := w.send(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+kind+"\r\nContent-Length: 9999\r\n\r\n")
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					for {
						if _, err := conn.Write([]byte(" ")); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				res := readAnswer(t, conn)
				if took := time.Since(start); res.StatusCode != 408 || took != w.cfg.ReadTimeout {
					t.Errorf("got %d after %s, want 408 after %s", res.StatusCode, took, w.cfg.ReadTimeout)
				}
				must.OK(t, conn.Close())
				<-gone
			})
			expect.Equal(t, len(f.published)+len(f.requests), 0, "effects of an incomplete body")
		})
	}
}

func TestServer_ClosesIdleConnection(t *testing.T) {
	onWire(t, &fakes{}, nil, func(t *testing.T, w *wire) {
		conn, res := w.get(t, "/healthz")
		must.Get(io.Copy(io.Discard, res.Body))(t)
		took, _ := closedAfter(t, conn)
		expect.Equal(t, took, w.cfg.IdleTimeout, "time until the connection was closed")
	})
}

// A client that does not read an answer is disconnected, and its slot is released.
func TestServer_ClosesSlowReader(t *testing.T) {
	one := func(c *Config, _ *Deps) { c.MaxRequests = 1 }
	onWire(t, &fakes{}, one, func(t *testing.T, w *wire) {
		conn := w.send(t, "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
		defer conn.Close()
		synctest.Wait()
		expect.Equal(t, w.code(t, "/v1/openapi.json"), 503, "while the answer is unread")
		time.Sleep(w.cfg.WriteTimeout)
		synctest.Wait()
		expect.Equal(t, w.code(t, "/v1/openapi.json"), 200, "after the write time-out")
	})
}

func TestServer_BoundsRequestsInFlight(t *testing.T) {
	release := make(chan struct{})
	f := &fakes{hold: func(context.Context) { <-release }}
	two := func(c *Config, _ *Deps) { c.MaxRequests = 2 }
	onWire(t, f, two, func(t *testing.T, w *wire) {
		release = make(chan struct{})
		codes := make(chan int)
		for range 2 {
			go func() { codes <- w.code(t, "/v1/users/user:a/feed") }()
		}
		synctest.Wait()
		conn, res := w.get(t, "/v1/users/user:a/feed")
		expect.Equal(t, res.StatusCode, 503, "status of the third")
		expect.Equal(t, res.Header.Get("Retry-After"), "1", "Retry-After of the third")
		must.OK(t, conn.Close())
		expect.Equal(t, w.code(t, "/healthz"), 200, "probe of a full server")
		close(release)
		if a, b := <-codes, <-codes; a != 200 || b != 200 {
			t.Errorf("the two requests: got %d and %d, want 200", a, b)
		}
		expect.Equal(t, w.code(t, "/v1/users/user:a/feed"), 200, "afterwards")
	})
}

func TestEvents_SilentBroker(t *testing.T) {
	f := &fakes{}
	slow := func(_ *Config, d *Deps) { d.Publisher = silentBroker{} }
	onWire(t, f, slow, func(t *testing.T, w *wire) {
		start := time.Now()
		conn := w.send(t, fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(save), save))
		defer conn.Close()
		res := readAnswer(t, conn)
		if took := time.Since(start); res.StatusCode != 503 || took != w.cfg.PublishTimeout || res.Header.Get("Retry-After") == "" {
			t.Errorf("got %d after %s, want 503 with Retry-After after %s", res.StatusCode, took, w.cfg.PublishTimeout)
		}
	})
}

// silentBroker acknowledges nothing.
type silentBroker struct{}

func (silentBroker) PublishAs(ctx context.Context, _ string, lines []schemas.Line) error {
	<-ctx.Done()
	return &topics.PublishError{Events: len(lines), Err: ctx.Err()}
}

func TestPanic_DuringAnswerClosesConnection(t *testing.T) {
	f := &fakes{count: 1}
	f.hold = func(context.Context) {
		if f.counted > 0 { // the first count has been sent
			panic("no such part")
		}
	}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		conn, res := w.get(t, "/v1/users/user:a/feed/events")
		defer conn.Close()
		got, err := io.ReadAll(res.Body)
		expect.Equal(t, err, io.ErrUnexpectedEOF, "end of the answer")
		expect.Equal(t, string(got), "event: new\ndata: {\"count\":1}\n\n", "answer")
		expect.Equal(t, w.code(t, "/healthz"), 200, "next request")
	})
}

func TestShutdown_CompletesRequestsInFlight(t *testing.T) {
	f := &fakes{hold: func(context.Context) { time.Sleep(3 * time.Second) }}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		code := make(chan int)
		go func() { code <- w.code(t, "/v1/users/user:a/feed") }()
		synctest.Wait()
		w.stop()
		synctest.Wait()
		select {
		case <-w.pipes.closed:
		default:
			t.Error("the listener is open while the server stops")
		}
		expect.Equal(t, <-code, 200, "status")
		err := <-w.ended
		w.ended <- err
		expect.Error(t, err, "", "Run")
	})
}

// A request that is still in flight at the end of the timeout loses its connection, and its context ends.
func TestShutdown_TimesOut(t *testing.T) {
	f := &fakes{hold: func(ctx context.Context) { <-ctx.Done() }}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		conn := w.send(t, "GET /v1/users/user:a/feed HTTP/1.1\r\nHost: localhost\r\n\r\n")
		defer conn.Close()
		synctest.Wait()
		start := time.Now()
		w.stop()
		err := <-w.ended
		w.ended <- err
		if took := time.Since(start); err == nil || took != w.cfg.ShutdownTimeout {
			t.Errorf("Run: got %v after %s, want an error after %s", err, took, w.cfg.ShutdownTimeout)
		}
		took, _ := closedAfter(t, conn)
		expect.Equal(t, took, 0, "time from the return of Run until the connection was closed")
	})
}
