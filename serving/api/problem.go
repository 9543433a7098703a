package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/insight"
)

// Problem is an error answer after RFC 9457, application/problem+json. It is an error, so that handlers can return it.
type Problem struct {
	Type   string   `json:"type"` // always about:blank: Title is the text of the status
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail,omitempty"`
	Errors []string `json:"errors,omitempty"` // each problem of the request, if there may be several

	Request string `json:"request,omitempty"` // the id of the request, as in the header and in the log
	Trace   string `json:"trace,omitempty"`   // the id of the trace, if it is recorded

	headers map[string]string // of the answer
}

// Error returns the status and the detail for the log. Errors is only in the answer.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail) }

// retryIn adds the header Retry-After.
func (p *Problem) retryIn(seconds int) *Problem { return p.with("Retry-After", strconv.Itoa(seconds)) }

// with adds a header.
func (p *Problem) with(header, value string) *Problem {
	p.headers[header] = value
	return p
}

// because adds the cause, which is logged and not answered.
func (p *Problem) because(cause error) error { return fmt.Errorf("%w (%w)", p, cause) }

// problem returns a Problem with a status and a sentence for people.
func problem(status int, format string, args ...any) *Problem {
	return &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...), headers: map[string]string{},
	}
}

// problemOf returns the answer to an error of a handler. An error that the caller did not cause becomes a 500 or 503 without
// its text, which may contain internals; the log contains it.
func problemOf(err error) *Problem {
	var (
		p       *Problem
		request *feature.RequestError
		asked   *insight.RequestError
		tooBig  *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &request):
		return listed(request.Problems)
	case errors.As(err, &asked):
		return problem(http.StatusBadRequest, "%v", asked)
	case errors.Is(err, feed.ErrBadLimit), errors.Is(err, feed.ErrBadCursor), errors.Is(err, schemas.ErrUnknownFeed):
		return problem(http.StatusBadRequest, "%v", err)
	case errors.As(err, &tooBig):
		return problem(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooBig.Limit)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("no answer in time")
	}
	return problem(http.StatusInternalServerError, "the request failed; the log has the cause under its id")
}

// listed returns a 400 that names every problem of a request.
func listed(problems []string) *Problem {
	p := problem(http.StatusBadRequest, "%s", strings.Join(problems[:min(len(problems), 3)], "; "))
	if more := len(problems) - 3; more > 0 {
		p.Detail += fmt.Sprintf("; and %d more", more)
	}
	p.Errors = problems
	return p
}

// unavailable returns a 503 that asks the caller to retry after a second.
func unavailable(format string, args ...any) *Problem {
	return problem(http.StatusServiceUnavailable, format, args...).retryIn(1)
}

// answerError writes the answer to an error of a handler. It logs server errors that wrap a cause, unless the caller has
// disconnected.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if _, bare := err.(*Problem); !bare && p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("request", w.Header().Get(requestID)), traceAttr(tracing.ID(r.Context())), slog.Any("error", err))
	}
	if answerOf(r.Context()).begun {
		panic(http.ErrAbortHandler)
	}
	for header, value := range p.headers {
		w.Header().Set(header, value)
	}
	told := *p
	told.Request, told.Trace = w.Header().Get(requestID), tracing.ID(r.Context())
	body, err := json.Marshal(told)
	if err != nil { // unreachable: it contains only text and numbers
		w.WriteHeader(p.Status)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	write(w, p.Status, "application/problem+json", body)
}

// writeJSON writes a value that must not be cached, because feeds and features change at any moment.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	w.Header().Set("Cache-Control", "no-store")
	write(w, status, "application/json", append(body, '\n'))
	return nil
}

// write sends a complete body. It ignores errors of the connection, because the caller has disconnected.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// minCompressed is the minimum length in bytes of a compressed answer. A shorter one fits one packet.
const minCompressed = 1400

// compressor returns a middleware that compresses answers with gzip for clients that accept it. It must not be used for streams:
// each event must be sent at once.
func compressor() (func(http.Handler) http.HandlerFunc, error) {
	compress, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(1), // feeds shrink to a fifth; a higher level saves little more
		gzhttp.EnableZstd(false),
		gzhttp.ContentTypes([]string{
			"application/json", "application/problem+json", "text/html", "text/css", "text/javascript", "image/svg+xml",
		}))
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	return compress, nil
}
