package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// quiet is how long a stream may say nothing at all: servers send a comment every 15 seconds, so this one has gone.
const quiet = 45 * time.Second

var errQuiet = errors.New("the server has said nothing for too long")

// WaitingStream counts what a visit would bring, up to 100: at once, and then whenever that has changed, until ctx ends
// or the loop is left. The last pair says why there are no more and has no count: the cause of ctx's end, an *Error, io.EOF
// when the server has ended the stream, as it does when it stops, and otherwise what became of the connection, which
// counts as lost after 45 seconds of silence. Each loop over it asks once.
func (c *Client) WaitingStream(ctx context.Context, user schemas.UserID) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		silence := time.AfterFunc(c.http.Timeout, func() { end(errQuiet) })
		defer silence.Stop()
		in, err := c.listen(ctx, "v1", "users", string(user), "feed", "events")
		if err == nil {
			defer func() { _ = in.Close() }()
			if err = counts(events{bufio.NewScanner(in), silence}, yield); err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(0, fmt.Errorf("count what waits for %s: %w", user, err))
	}
}

// counts hands counts over until one is not taken, which is no error.
func counts(in events, yield func(int, error) bool) error {
	for {
		n, err := read[count](in.next("new"))
		if err != nil {
			return err
		}
		if !yield(n.Count, nil) {
			return nil
		}
	}
}

// listen asks for a stream of events; ctx bounds how long it goes on. Close it.
func (c *Client) listen(ctx context.Context, path ...string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, c.at(nil, path), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	asking := *c.http
	asking.Timeout = 0 // it would end the stream, too
	res, err := asking.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err) // it names method and address
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream") {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	if _, err = c.answer(res); err == nil {
		err = fmt.Errorf("ask %s: the answer is %q, want a stream of events", req.URL, res.Header.Get("Content-Type"))
	}
	return nil, err
}

// events are read from a stream as a browser reads them (https://html.spec.whatwg.org/#event-stream-interpretation), but
// for lone carriage returns, which end no line here. One event is at most as long as a line of a scanner, 64 KiB.
type events struct {
	lines   *bufio.Scanner
	silence *time.Timer // runs while a line is waited for
}

// next returns the data of the next event of a name, and io.EOF at the end. Other events, comments and fields are passed
// over, for servers may add some.
func (e events) next(name string) (json.RawMessage, error) {
	var of string
	var data []byte
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && of == name && data != nil:
			return data, nil
		case line == "":
			of, data = "", nil
		case field == "event":
			of = value
		case field == "data":
			data = append(append(data, value...), '\n')
		}
		if len(data) > bufio.MaxScanTokenSize {
			return nil, fmt.Errorf("read event: %w", bufio.ErrTooLong)
		}
	}
}

// line returns the next line, and io.EOF behind the last. Only waiting counts as silence, and not what the loop over
// the events takes.
func (e events) line() (string, error) {
	e.silence.Reset(quiet)
	defer e.silence.Stop()
	switch {
	case e.lines.Scan():
		return e.lines.Text(), nil
	case e.lines.Err() != nil:
		return "", fmt.Errorf("read event: %w", e.lines.Err())
	}
	return "", io.EOF
}
