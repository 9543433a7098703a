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
)

// maxSilence is how long a stream may be silent. Servers send a comment every 15 seconds, so a server that is silent for longer
// is unreachable.
const maxSilence = 45 * time.Second

var errSilent = errors.New("the server sent nothing for too long")

// WaitingStream yields how many new items a visit would show, at most 100: at once, and then after each change, until ctx
// ends or the loop stops. The last pair has no count, and an error that states why the stream ended:
//
//   - the cause of ctx
//   - an *Error
//   - io.EOF if the server ended the stream, as it does when it stops
//   - any other error of the connection, which counts as lost after 45 seconds of silence
//
// Each loop makes one request.
func (c *Client) WaitingStream(ctx context.Context, user string) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silence := time.AfterFunc(c.http.Timeout, func() { cancel(errSilent) })
		defer silence.Stop()
		in, err := c.listen(ctx, "v1", "users", user, "feed", "events")
		if err == nil {
			defer func() { _ = in.Close() }()
			if err = counts(events{bufio.NewScanner(in), silence}, yield); err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(0, fmt.Errorf("count new items of %s: %w", user, err))
	}
}

// counts yields counts until yield returns false. This is not an error.
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

// listen requests a stream of events, which lasts at most until ctx ends. The caller must close it.
func (c *Client) listen(ctx context.Context, path ...string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, c.at(nil, path), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	unlimited := *c.http
	unlimited.Timeout = 0 // it would also end the stream
	res, err := unlimited.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call server: %w", err) // err names the method and the address
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream") {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	if _, err = c.answer(res); err == nil {
		err = fmt.Errorf("call %s: answer is %q, want text/event-stream", req.URL, res.Header.Get("Content-Type"))
	}
	return nil, err
}

// events reads events from a stream as a browser does (https://html.spec.whatwg.org/#event-stream-interpretation), except
// that a lone carriage return does not end a line. A line of an event is at most as long as a line of a scanner, 64 KiB, and
// so is its data.
type events struct {
	lines   *bufio.Scanner
	silence *time.Timer // runs while a line is awaited
}

// next returns the data of the next event with a name, and io.EOF at the end. It ignores other events, comments and fields,
// because servers may add some.
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

// line returns the next line, and io.EOF after the last. Only the time spent here counts as silence, not the time that the
// caller's loop takes.
func (e events) line() (string, error) {
	e.silence.Reset(maxSilence)
	defer e.silence.Stop()
	switch {
	case e.lines.Scan():
		return e.lines.Text(), nil
	case e.lines.Err() != nil:
		return "", fmt.Errorf("read event: %w", e.lines.Err())
	}
	return "", io.EOF
}
