package api

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// endless sends a text repeatedly until the receiver stops reading.
type endless struct {
	text string
	most int64 // bytes
	sent int64
}

// send writes until all bytes are sent, or the receiver stops reading.
func (e *endless) send(conn net.Conn) {
	piece := []byte(strings.Repeat(e.text, max(1, 64<<10/len(e.text))))
	for e.sent < e.most {
		n, err := conn.Write(piece[:min(int64(len(piece)), e.most-e.sent)])
		if e.sent += int64(n); err != nil {
			return
		}
	}
}

// A request of a thousand times the allowed size is rejected with a matching status. The server reads only a little beyond
// the limit and allocates no memory for the rest.
func TestLimits_OversizedRequests(t *testing.T) {
	const (
		post     = " HTTP/1.1\r\nHost: localhost\r\n"
		events   = "POST /v1/events" + post
		features = "POST /v1/features" + post
		chunked  = "Transfer-Encoding: chunked\r\n\r\n"
		chunk    = "10000\r\n" // 64 KiB
		limit    = 100 << 20   // bytes of all allocations: well above those for a body of the maximum size
	)
	cfg := DefaultConfig()
	body, object, header := 1000*int64(cfg.MaxEventsBytes), 1000*int64(cfg.MaxFeaturesBytes), 1000*int64(cfg.MaxHeaderBytes)
	length := func(n int64) string { return "Content-Length: " + strconv.FormatInt(n, 10) + "\r\n\r\n" }
	pad := func(text string) string { return chunk + strings.Repeat(text, 64<<10/len(text)) + "\r\n" }
	lines := strings.Repeat(save+"\n", 64<<10/(len(save)+1))
	lines += strings.Repeat(" ", 64<<10-len(lines))
	for _, c := range []struct {
		name, begin, more string
		most              int64 // bytes to send if the server reads them
		reads             int64 // the maximum that the server may read
		code              int
	}{
		{"events, announced length", events + length(body), "\n", body, 0, 413},
		{"events, in chunks", events + chunked, chunk + lines + "\r\n", body, 9 << 20, 413},
		{"blank lines in chunks", events + chunked, pad("\n"), body, 9 << 20, 413},
		{"bad lines in chunks", events + chunked, pad("x\n"), body, 9 << 20, 413},
		{"one line in chunks", events + chunked, pad("x"), body, 9 << 20, 413},
		{"one line of spaces in chunks", events + chunked, pad(" "), body, 9 << 20, 413},
		{"an extension of a chunk", events + chunked + "1;", "x", body, 1 << 20, 400},
		{"extensions of chunks of a byte", events + chunked, "1;" + strings.Repeat("x", 1000) + "\r\n\n\r\n", body, 1 << 20, 400},
		{"an object, announced length", features + length(object), " ", object, 0, 413},
		{"an object in chunks", features + chunked, pad(" "), object, 2 << 20, 413},
		{"a deep object in chunks", features + chunked, pad("["), object, 2 << 20, 413},
		{"one header", "GET /healthz" + post + "X-Long: ", "x", header, 1 << 20, 431},
		{"many headers", "GET /healthz" + post, "X: y\r\n", header, 1 << 20, 431},
		{"one token", "GET /v1/status" + post + "Authorization: Bearer ", "x.", header, 1 << 20, 431},
		{"a path", "GET /v1/users/user:", "x", header, 1 << 20, 431},
		{"an escaped path", "GET /v1/users/user:", "%2e", header, 1 << 20, 431},
		{"a path of many parts", "GET ", "/..", header, 1 << 20, 431},
		{"a query", "GET /v1/dictionary?state=", "x", header, 1 << 20, 431},
		{"many parameters", "GET /v1/dictionary?", "x&", header, 1 << 20, 431},
		{"a method", "", "GET", header, 1 << 20, 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakes{}
			onWire(t, f, nil, func(t *testing.T, w *wire) {
				var before, after runtime.MemStats
				more := endless{text: c.more, most: c.most}
				runtime.ReadMemStats(&before)
				conn := w.send(t, c.begin)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					more.send(conn)
				}()
				res := readAnswer(t, conn)
				_, err := io.Copy(io.Discard, res.Body)
				conn.Close()
				<-sent
				runtime.ReadMemStats(&after)
				expect.Error(t, err, "", "answer")
				expect.Equal(t, res.StatusCode, c.code, "status")
				expect.AtMost(t, more.sent, c.reads+512<<10, "bytes that the server read")
				expect.AtMost(t, after.TotalAlloc-before.TotalAlloc, limit, "allocated bytes")
				expect.Equal(t, w.code(t, "/healthz"), http.StatusOK, "the next request")
			})
			expect.Equal(t, len(f.published)+len(f.requests), 0, "effects")
		})
	}
}

// A header of almost the maximum size is answered, regardless of its number of parts, with bounded memory.
func TestLimits_HeaderOfManyParts(t *testing.T) {
	room := int(DefaultConfig().MaxHeaderBytes) - 2000
	s := listen(t, &fakes{}, nil)
	for name, c := range map[string]struct {
		path   string
		header []string
		code   int
	}{
		"parameters":             {"/v1/dictionary?" + strings.Repeat("x&", room/2), nil, 400},
		"other parameters":       {"/v1/dictionary?" + numbered(room), nil, 400},
		"one parameter repeated": {"/v1/dictionary?" + strings.Repeat("limit=1&", room/8), nil, 400},
		"an id":                  {"/v1/users/user:" + strings.Repeat("x", room) + "/feed", nil, 400},
		"an escaped id":          {"/v1/users/user:" + strings.Repeat("%20", room/3) + "/feed", nil, 400},
		"parts of a path":        {"/v1/" + strings.Repeat("x/", room/2), nil, 404},
		"a cursor":               {"/v1/users/user:a/feed?cursor=" + strings.Repeat("A", room), nil, 400},
		"a token":                {"/v1/status", []string{"Authorization", "Bearer " + strings.Repeat("a.", room/2)}, 200}, // authentication is disabled
		"verbs":                  {"/v1/insights/funnel?steps=" + strings.Repeat("view,", room/5), nil, 400},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := roundTrip(s, "GET", c.path, "", c.header...)
		n, err := io.Copy(io.Discard, res.Body)
		runtime.ReadMemStats(&after)
		expect.Error(t, err, "", "%s", name)
		expect.Equal(t, res.StatusCode, c.code, "%s: status", name)
		expect.AtMost(t, after.TotalAlloc-before.TotalAlloc, 8<<20, "%s: allocated bytes", name)
		expect.AtMost(t, n, 1<<20, "%s: bytes of the answer", name)
	}
}

// numbered returns parameters with different names.
func numbered(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		b.WriteString(strconv.FormatInt(int64(i), 36) + "&")
	}
	return b.String()
}
