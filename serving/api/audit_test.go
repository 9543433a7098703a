package api

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// limiter records the limits that DeadLetters received, and the operator.
type limiter struct {
	DeadLetters
	by string
}

func (l *limiter) Limit(_ context.Context, _ schemas.RetryLimit, operator string) error {
	l.by = operator
	return nil
}

// A change is attributed to the subject of the token, regardless of the body. Every call that operates the product is
// logged, including rejected ones.
func TestAudit_OperatorIsTokenSubject(t *testing.T) {
	const limit, ann = "/v1/dead-letters/limits", `{"kind":"actions","rate":0,"operator":"ann"}`
	for _, test := range []struct {
		name, token, body string
		authenticated     bool
		code              int
		by                string // the operator of the change; "": no change
		log               string
	}{
		{"name of another operator", auth.Operate, ann, true, 200, "operate-service", "level=INFO msg=operated operator=operate-service method=POST route=/v1/dead-letters/limits code=200"},
		{"no name", auth.Operate, `{"kind":"actions","rate":0}`, true, 200, "operate-service", "operator=operate-service"},
		{"a wrong body", auth.Operate, `{"kind":""}`, true, 400, "", "operator=operate-service method=POST route=/v1/dead-letters/limits code=400"},
		{"no scope", auth.Feed, ann, true, 403, "", "operator=feed-service method=POST route=/v1/dead-letters/limits code=403"},
		{"no token", "", ann, true, 401, "", "operator=anonymous@192.0.2.1 method=POST route=/v1/dead-letters/limits code=401"},
		{"no authentication", "", ann, false, 200, "ann", "operator=anonymous@192.0.2.1"},
		{"no authentication, no name", "", `{"kind":"actions","rate":0}`, false, 200, "anonymous@192.0.2.1", "operator=anonymous@192.0.2.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			told := &limiter{}
			s := listen(t, &fakes{}, func(c *Config, d *Deps) {
				d.DeadLetters, d.Log = told, slog.New(slog.NewTextHandler(&log, nil))
				if test.authenticated {
					authenticated(c, d)
				}
			})
			header := []string{"Content-Type", "application/json"}
			if test.token != "" {
				header = append(header, "Authorization", "Bearer "+test.token)
			}
			res := roundTrip(s, "POST", limit, test.body, header...)
			expect.Equal(t, res.StatusCode, test.code, "status")
			expect.Equal(t, told.by, test.by, "operator")
			if got := log.String(); !strings.Contains(got, test.log) || !strings.Contains(got, "request=") {
				t.Errorf("got the log\n%s\nwant %s in it", got, test.log)
			}
		})
	}
}

// A read is not logged at level info.
func TestAudit_LogsReadsAtDebug(t *testing.T) {
	var log bytes.Buffer
	level := new(slog.LevelVar)
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
	})
	for _, wanted := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		level.Set(wanted)
		log.Reset()
		roundTrip(s, "GET", "/v1/status", "")
		expect.Equal(t, strings.Contains(log.String(), "msg=operated"), wanted == slog.LevelDebug, "level %s: in the log", wanted)
	}
}

// One caller cannot use all streams.
func TestStream_BoundsStreamsOfOneCaller(t *testing.T) {
	change := func(c *Config, d *Deps) {
		authenticated(c, d)
		c.MaxCallerStreams, c.MaxStreams = 2, 100
	}
	onWire(t, &fakes{count: 1}, change, func(t *testing.T, w *wire) {
		open := func(user string) (net.Conn, *http.Response) {
			conn := w.send(t, "GET /v1/users/user:"+user+"/feed/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+user+"\r\n\r\n")
			return conn, readAnswer(t, conn)
		}
		first, _ := open("a")
		second, res := open("a")
		defer second.Close()
		expect.Equal(t, res.StatusCode, 200, "status of the second stream")
		third, res := open("a")
		third.Close()
		expect.Equal(t, res.StatusCode, 429, "status of the third stream")
		expect.True(t, res.Header.Get("Retry-After") != "", "the third stream has Retry-After")
		other, res := open("b")
		defer other.Close()
		expect.Equal(t, res.StatusCode, 200, "another caller")
		first.Close()
		time.Sleep(time.Second) // until the server has noticed
		again, res := open("a")
		defer again.Close()
		expect.Equal(t, res.StatusCode, 200, "after one was closed")
	})
}
