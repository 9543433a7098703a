package api

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// start opens a request with a body of the given length, sends the start of it, and then stops.
func (w *wire) start(t *testing.T, token, path string, length int64, text string) net.Conn {
	t.Helper()
	return w.send(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, token, length, text))
}

// posted sends a complete request and returns the status of the answer.
func (w *wire) posted(t *testing.T, token, path, body string) int {
	t.Helper()
	conn := w.start(t, token, path, int64(len(body)), body)
	defer conn.Close()
	return readAnswer(t, conn).StatusCode
}

// twoOfEach configures two services for each scope.
func twoOfEach(c *Config, d *Deps) {
	k := someTokens()
	for _, scope := range auth.Scopes() {
		k["other-"+scope] = auth.Caller{Subject: "other", Scopes: []string{scope}}
	}
	d.Auth = k
}

// Announced bodies that do not arrive use none of the common limits: no bytes, and no slot of a request in flight.
func TestSlowBodies_UseNoCommonLimits(t *testing.T) {
	for _, c := range []struct {
		name, scope, path string
		slow              int   // requests
		length            int64 // announced by each, at most the limit of the call
		good              string
		code              int
		change            func(*Config)
	}{
		{"events, all bytes", auth.Events, "/v1/events", 8, 8 << 20, save, 202, nil},
		{"events, all slots", auth.Events, "/v1/events", 600, 1000, save, 202, nil},
		{"events, all slots of a busy machine", auth.Events, "/v1/events", 20, 1000, save, 202, func(c *Config) { c.MaxRequests = 12 }},
		{"features", auth.Features, "/v1/features", 600, 1 << 20, `{"features":["a"]}`, 200, nil},
		{"trials", auth.Features, "/v1/features/try", 20, 1 << 20, `{"definition":"{name: a, entity: user, aggregate: count}"}`, 200, nil},
		{"decisions", auth.Operate, "/v1/dictionary/decisions", 600, 1 << 20, `{"term":"oolong","state":"candidate"}`, 200, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := func(cfg *Config, d *Deps) {
				twoOfEach(cfg, d)
				if c.change != nil {
					c.change(cfg)
				}
			}
			onWire(t, &fakes{}, change, func(t *testing.T, w *wire) {
				for range c.slow {
					defer w.start(t, c.scope, c.path, c.length, " ").Close()
				}
				synctest.Wait()
				expect.Equal(t, w.posted(t, "other-"+c.scope, c.path, c.good), c.code, "during %d slow requests of another caller", c.slow)
			})
		})
	}
}

// A user who does not read the answers uses only a share of the slots. Other users are not affected, and this user recovers
// when the answers are read.
func TestLimits_BoundRequestsOfOneUser(t *testing.T) {
	change := func(c *Config, d *Deps) {
		authenticated(c, d)
		c.MaxCallerRequests, c.MaxRequests, c.Limits.UserRate = 3, 5, 0
	}
	onWire(t, &fakes{}, change, func(t *testing.T, w *wire) {
		request := func(user string) net.Conn {
			return w.send(t, "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+user+"\r\n\r\n")
		}
		code := func(user string) int {
			conn := request(user)
			defer conn.Close()
			return readAnswer(t, conn).StatusCode
		}
		unread := []net.Conn{request("a"), request("a"), request("a")}
		synctest.Wait()
		expect.Equal(t, code("a"), http.StatusTooManyRequests, "a fourth request")
		expect.Equal(t, code("b"), http.StatusOK, "another user")
		for _, conn := range unread {
			res := readAnswer(t, conn)
			if n, err := io.Copy(io.Discard, res.Body); res.StatusCode != http.StatusOK || n != int64(len(openAPIDocument)) || err != nil {
				t.Errorf("read later: got %d, %d bytes, %v; want 200 and all %d", res.StatusCode, n, err, len(openAPIDocument))
			}
			conn.Close()
		}
		synctest.Wait()
		expect.Equal(t, code("a"), http.StatusOK, "afterwards")
	})
}

// One caller's bodies use at most a share of the common limit, and the rejection says so.
func TestLimits_BoundBodiesOfOneCaller(t *testing.T) {
	const half = 512 << 10
	change := func(c *Config, d *Deps) {
		twoOfEach(c, d)
		c.MaxFeaturesBytes, c.MaxEventsBytes, c.MaxCallerBytes, c.MaxInflightBytes = 2*half, 2*half, 64<<10, 3*half
	}
	line := save + strings.Repeat(" ", half/4-len(save)-1) + "\n"
	for _, c := range []struct {
		path, scope, chunk, good string
		taken                    int // expected status
	}{
		{"/v1/events", auth.Events, strings.Repeat(line, 4), strings.Repeat(line, 3), 202},
		{"/v1/features", auth.Features, strings.Repeat(" ", half), `{"features":["a"]}` + strings.Repeat(" ", half-100), 200},
	} {
		onWire(t, &fakes{}, change, func(t *testing.T, w *wire) {
			first := w.start(t, c.scope, c.path, half+1, c.chunk)
			second := w.start(t, c.scope, c.path, half-1, c.chunk[:half/2])
			defer second.Close()
			synctest.Wait()
			for name, header := range map[string]string{"announced": "Content-Length: 500000", "not announced": "Transfer-Encoding: chunked"} {
				conn := w.send(t, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+c.scope+"\r\n"+header+"\r\n\r\n")
				chunked(conn, c.good)
				res := readAnswer(t, conn)
				expect.Equal(t, res.StatusCode, 429, "%s, status of a third body whose size is %s", c.path, name)
				expect.True(t, res.Header.Get("Retry-After") != "", "%s: Retry-After", c.path)
				conn.Close()
			}
			expect.Equal(t, w.posted(t, "other-"+c.scope, c.path, c.good), c.taken, "%s: another caller", c.path)
			first.Close()
			synctest.Wait()
			expect.Equal(t, w.posted(t, c.scope, c.path, c.good), c.taken, "%s, after the first disconnected", c.path)
		})
	}
}

// chunked sends a body as one chunk in the background, because the server may stop reading before its end.
func chunked(conn net.Conn, body string) {
	go func() { _, _ = fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", len(body), body) }()
}

// A request that waited for its body is rejected if all slots are then taken.
func TestSlowBodies_RejectedAtCapacityAfterWaiting(t *testing.T) {
	for path, body := range map[string]string{"/v1/events": save, "/v1/features": `{"features":["a"]}`, "/v1/features/try": `{"definition":"a"}`} {
		f := &fakes{}
		onWire(t, f, nil, func(t *testing.T, w *wire) {
			conn := w.start(t, "", path, int64(len(body)), body[:10])
			defer conn.Close()
			synctest.Wait()
			fill(w.Server)
			before := w.gates.Bounds()
			must.Get(conn.Write([]byte(body[10:])))(t)
			if res := readAnswer(t, conn); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Errorf("%s: got %d, want 503 with Retry-After", path, res.StatusCode)
			}
			for class, bound := range before {
				for range bound {
					w.gates.Leave(class)
				}
			}
			for range maxTrials {
				w.gates.Leave(string(trial))
			}
			expect.AtMost(t, w.posted(t, "", path, body), 299, "%s, with free slots again: status", path)
		})
		expect.False(t, len(f.published) > 1 || len(f.requests) > 1, "%s: a rejected request had an effect", path)
	}
}
