package api

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// silence is after how long a stream that has nothing to say sends a comment, so that no proxy takes it for dead.
const silence = 15 * time.Second

// waitingStream sends the count of new items as it changes, as server-sent events.
func (s *Server) waitingStream(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user := p.user()
	if err := p.err(); err != nil {
		return err
	}
	out := eventStream{w: w, control: http.NewResponseController(w), timeout: s.cfg.WriteTimeout}
	// The server's deadlines are those of a request; reading goes on for as long as the stream, to notice that the
	// caller has gone.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("stream new items of %s: %w", user, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not gather events
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

// streamCounts sends the count whenever it has changed, until the caller or the server goes, or the token expires. While it cannot be read
// the last one stands.
func (s *Server) streamCounts(out eventStream, r *http.Request, user schemas.UserID) {
	tick := time.NewTicker(s.cfg.StreamPoll)
	defer tick.Stop()
	last, spoke := -1, time.Now()
	for {
		text := ""
		if n, err := s.deps.Feed.Waiting(r.Context(), user); err == nil && n != last {
			last, text = n, fmt.Sprintf("event: new\ndata: {\"count\":%d}\n\n", n)
		} else if time.Since(spoke) >= silence {
			text = ": still here\n\n"
		}
		if text != "" {
			spoke = time.Now()
			if out.send(text) != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done(): // the caller has gone, or the token has expired
			_ = out.bound()
			return
		case <-stopping(r):
			_ = out.bound() // the end of the answer is written, too
			return
		}
	}
}

// eventStream writes to a caller who may stop reading.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // for one write
}

// send fails when the caller does not take the text within the time-out.
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

// bound has what is written from now on fail when the caller does not take it within the time-out.
func (e eventStream) bound() error { return e.control.SetWriteDeadline(time.Now().Add(e.timeout)) }

// unbound takes the bound away until there is a text: over HTTP/2 a deadline that passes resets the stream also when nothing
// is being written.
func (e eventStream) unbound() error { return e.control.SetWriteDeadline(time.Time{}) }
