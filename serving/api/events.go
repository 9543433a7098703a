package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
)

// maxProblems is how many bad lines an answer names one by one: enough to see what is wrong, and bounded.
const maxProblems = 1000

// events publishes the lines of the body, all or none: a bad line publishes nothing. It answers when the broker has
// acknowledged every event. Sent again, events have no second effect: they have ids.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(parametersOf(r).err(), contentType(r, "application/x-ndjson")); err != nil {
		return err
	}
	body := http.MaxBytesReader(w, r.Body, s.cfg.MaxEventsBytes)
	lines, err := s.readLines(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.PublishTimeout)
	defer cancel()
	if err := s.deps.Publisher.Publish(ctx, lines); err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the broker has not acknowledged every event: send them again"), err)
	}
	return writeJSON(w, http.StatusAccepted, map[string]int{"accepted": len(lines)})
}

// readLines parses and validates every line of the body. Blank lines are passed over.
func (s *Server) readLines(body io.Reader) ([]schemas.Line, error) {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, schemas.MaxLineBytes)
	now := schemas.MicrosOf(s.deps.Now())
	var (
		lines []schemas.Line
		bad   []string
		n     int
	)
	for n = 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if len(lines)+len(bad) == s.cfg.MaxEvents {
			return nil, problem(http.StatusRequestEntityTooLarge, "more than %d events", s.cfg.MaxEvents)
		}
		line, err := schemas.ParseLine(scanner.Bytes())
		if err == nil {
			err = line.Validate(now, s.deps.Verbs)
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %v", n, err))
			continue
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		bad = append(bad, fmt.Sprintf("line %d: longer than %d bytes", n, schemas.MaxLineBytes))
	} else if err != nil {
		return nil, readError(err)
	}
	return lines, badLines(lines, bad)
}

func badLines(lines []schemas.Line, bad []string) error {
	switch {
	case len(bad) > 0:
		p := problem(http.StatusBadRequest, "%d lines are bad; nothing was published", len(bad))
		p.Errors = bad[:min(len(bad), maxProblems)]
		return p
	case len(lines) == 0:
		return problem(http.StatusBadRequest, "the body holds no event")
	}
	return nil
}

// readError tells a body that is too large or too slow from one whose sender has gone.
func readError(err error) error {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return err
	}
	return problem(http.StatusRequestTimeout, "the body did not arrive whole")
}

// contentType refuses a body that says it is something else. A body that says nothing is taken for what is wanted.
func contentType(r *http.Request, want string) error {
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(given); err != nil || media != want {
		return problem(http.StatusUnsupportedMediaType, "the body is %q; wanted is %s", given, want)
	}
	return nil
}
