package api

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// keepAlive is the time after which an idle stream sends a comment, so that proxies keep the connection open.
const keepAlive = 15 * time.Second

// waitingStream sends the number of new items as server-sent events whenever it changes.
func (s *Server) waitingStream(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user := p.user()
	if err := p.err(); err != nil {
		return err
	}
	out := eventStream{w: w, control: http.NewResponseController(w), timeout: s.cfg.WriteTimeout}
	// The server's deadlines are for requests. Reading continues for as long as the stream lasts, to notice that the caller
	// has disconnected.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("stream new items of %s: %w", user, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer events
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := out.unbound(); err != nil {
		return fmt.Errorf("stream new items of %s: %w", user, err)
	}
	s.streamCounts(out, r, user)
	return nil
}

// streamCounts sends the count whenever it has changed, until the caller disconnects, the server stops, or the token
// expires. While the count cannot be read, the last one stays valid.
func (s *Server) streamCounts(out eventStream, r *http.Request, user schemas.UserID) {
	tick := time.NewTicker(s.cfg.StreamPollInterval)
	defer tick.Stop()
	last, spoke := -1, time.Now()
	for {
		text := ""
		if n, err := s.deps.Feed.Waiting(r.Context(), user); err == nil && n != last {
			last, text = n, fmt.Sprintf("event: new\ndata: {\"count\":%d}\n\n", n)
		} else if time.Since(spoke) >= keepAlive {
			text = ": keep-alive\n\n"
		}
		if text != "" {
			spoke = time.Now()
			if out.send(text) != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done(): // the caller has disconnected, or the token has expired
			_ = out.bound()
			return
		case <-stopping(r):
			_ = out.bound() // for the end of the answer
			return
		}
	}
}

// eventStream writes to a caller that may stop reading.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write
}

// send returns an error if the caller does not read the text within the timeout.
func (e eventStream) send(text string) error {
	if err := e.bound(); err != nil {
		return err
	}
	if _, err := io.WriteString(e.w, text); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil {
		return err
	}
	return e.unbound()
}

// bound sets the deadline for the next writes: they fail if the caller does not read within the timeout.
func (e eventStream) bound() error { return e.control.SetWriteDeadline(time.Now().Add(e.timeout)) }

// unbound removes the deadline until the next text. Over HTTP/2, a deadline that passes resets the stream even if
// nothing is being written.
func (e eventStream) unbound() error { return e.control.SetWriteDeadline(time.Time{}) }
