package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const countsPath = "/v1/users/user:a/feed/events"

// counts opens a stream.
func counts(t *testing.T, w *wire) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, res := w.get(t, countsPath)
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("got %d %q, want 200 text/event-stream", res.StatusCode, got)
	}
	return conn, bufio.NewReader(res.Body)
}

// nextEvent reads up to the blank line that ends an event or a comment.
func nextEvent(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	var event strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("got %v after %q", err, event.String())
		}
		if line == "\n" {
			return event.String()
		}
		event.WriteString(line)
	}
}

func TestStream_SendsChangedCounts(t *testing.T) {
	f := &fakes{count: 3}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		conn, in := counts(t, w)
		defer conn.Close()
		expect.Equal(t, nextEvent(t, in), "event: new\ndata: {\"count\":3}\n", "first event")
		time.Sleep(2 * time.Second) // nothing changes
		f.set(5)
		start := time.Now()
		expect.Equal(t, nextEvent(t, in), "event: new\ndata: {\"count\":5}\n", "second event")
		expect.AtMost(t, time.Since(start), w.cfg.StreamPollInterval, "time until a change")
	})
}

// The deadlines of requests do not apply to a stream, and an idle stream sends a comment before a proxy closes it.
func TestStream_OutlivesDeadlines(t *testing.T) {
	f := &fakes{}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		conn, in := counts(t, w)
		defer conn.Close()
		nextEvent(t, in)
		start := time.Now()
		for time.Since(start) < 10*w.cfg.WriteTimeout {
			before := time.Now()
			expect.Equal(t, nextEvent(t, in), ": keep-alive\n", "comment")
			if took := time.Since(before); took < keepAlive || took > keepAlive+w.cfg.StreamPollInterval {
				t.Fatalf("a comment after %s, want %s", took, keepAlive)
			}
		}
	})
}

// Over HTTP/2 a deadline that passes resets its stream even if nothing is being written. An idle stream must nevertheless
// stay open from its first moment on.
func TestStream_StaysOpenOverHTTP2(t *testing.T) {
	f, reads := &fakes{}, 0
	f.hold = func(context.Context) { // the reads of the count fail for the first two seconds
		f.fail = nil
		if reads++; reads < 9 {
			f.fail = errors.New("unavailable")
		}
	}
	s := listen(t, f, func(c *Config, _ *Deps) {
		c.ReadTimeout, c.PublishTimeout, c.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond, time.Second
	})
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := s.server(nil)
		server.Protocols = &http.Protocols{}
		server.Protocols.SetUnencryptedHTTP2(true)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(p) }()
		transport := &http.Transport{
			Protocols:   server.Protocols,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(t), nil },
		}
		defer func() {
			transport.CloseIdleConnections()
			expect.Error(t, server.Close(), "", "close")
			expect.Is(t, <-ended, http.ErrServerClosed, "end of the server")
		}()
		res, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+countsPath, nil))
		if err != nil || res.ProtoMajor != 2 {
			t.Fatalf("got %v, %v, want an answer over HTTP/2", res, err)
		}
		defer res.Body.Close()
		in := bufio.NewReader(res.Body)
		nextEvent(t, in)
		for range 3 {
			expect.Equal(t, nextEvent(t, in), ": keep-alive\n", "comment")
		}
	})
}

func TestStream_ContinuesWhileCountsFail(t *testing.T) {
	f := &fakes{count: 1}
	var reads atomic.Int64
	f.hold = func(context.Context) { // the first read succeeds, the next three fail
		f.fail = nil
		if n := reads.Add(1); n > 1 && n < 5 {
			f.fail = errors.New("unavailable")
		} else if n == 5 {
			f.set(2)
		}
	}
	onWire(t, f, nil, func(t *testing.T, w *wire) {
		conn, in := counts(t, w)
		defer conn.Close()
		nextEvent(t, in)
		if got, want := nextEvent(t, in), "event: new\ndata: {\"count\":2}\n"; got != want || reads.Load() < 5 {
			t.Errorf("got %q after %d reads, want %q after 5", got, reads.Load(), want)
		}
	})
}

func TestStream_EndsWithServer(t *testing.T) {
	onWire(t, &fakes{}, nil, func(t *testing.T, w *wire) {
		conn, in := counts(t, w)
		defer conn.Close()
		nextEvent(t, in)
		start := time.Now()
		w.stop()
		expect.Is(t, expect.ErrorOf(in.ReadString('\n')), io.EOF, "ReadString")
		expect.AtMost(t, time.Since(start), time.Second, "time until the end")
	})
}

// A stream whose caller disconnects or stops reading releases its slot.
func TestStream_ReleasesItsSlot(t *testing.T) {
	for name, leave := range map[string]func(w *wire, conn net.Conn) error{
		"caller disconnects": func(_ *wire, conn net.Conn) error { return conn.Close() },
		"caller does not read": func(w *wire, _ net.Conn) error {
			time.Sleep(keepAlive + w.cfg.WriteTimeout + w.cfg.StreamPollInterval)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := func(c *Config, _ *Deps) { c.MaxStreams = 1 }
			onWire(t, &fakes{}, one, func(t *testing.T, w *wire) {
				conn, in := counts(t, w)
				defer conn.Close()
				nextEvent(t, in)
				expect.Equal(t, w.code(t, countsPath), 503, "second stream")
				expect.Equal(t, w.code(t, "/v1/users/user:a/feed"), 200, "another request")
				must.OK(t, leave(w, conn))
				synctest.Wait()
				again, _ := counts(t, w)
				must.OK(t, again.Close())
			})
		})
	}
}

func TestStream_HeadEnds(t *testing.T) {
	f := &fakes{}
	res := roundTrip(listen(t, f, nil), "HEAD", countsPath, "")
	expect.Equal(t, res.StatusCode, 200, "status")
	expect.Equal(t, f.counted, 0, "counts")
}

func TestStream_EndsWhenTokenExpires(t *testing.T) {
	change := func(_ *Config, d *Deps) {
		d.Auth = tokens{"a": {Subject: "user:a", User: "user:a", Expires: d.Now().Add(time.Minute)}}
	}
	onWire(t, &fakes{count: 1}, change, func(t *testing.T, w *wire) {
		start := time.Now()
		conn := w.send(t, "GET "+countsPath+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n\r\n")
		defer conn.Close()
		res := readAnswer(t, conn)
		end := time.AfterFunc(time.Hour, func() { _ = conn.Close() }) // closes a stream that does not end
		defer end.Stop()
		text, err := io.ReadAll(res.Body)
		if took := time.Since(start); err != nil || took != time.Minute || !strings.HasPrefix(string(text), "event: new") {
			t.Errorf("got %q and %v after %s, want the end after 1m", text, err, took)
		}
	})
}

func TestStream_ServicesHaveTheirOwnLimit(t *testing.T) {
	change := func(c *Config, d *Deps) {
		authenticated(c, d)
		c.MaxCallerStreams, c.MaxServiceStreams = 1, 2
	}
	onWire(t, &fakes{count: 1}, change, func(t *testing.T, w *wire) {
		for i, want := range []int{200, 200, 429} {
			conn := w.send(t, "GET "+countsPath+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer feed\r\n\r\n")
			defer conn.Close()
			expect.Equal(t, readAnswer(t, conn).StatusCode, want, "stream %d of a service", i+1)
		}
	})
}

func TestConfig_FewCallersCannotTakeAllStreams(t *testing.T) {
	cfg := DefaultConfig()
	expect.AtMost(t, cfg.MaxCallerStreams*32, cfg.MaxStreams, "32 times the streams of a user")
	expect.AtMost(t, cfg.MaxServiceStreams*4, cfg.MaxStreams, "four times the streams of a service")
}
