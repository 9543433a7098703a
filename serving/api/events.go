package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Publisher publishes events.
type Publisher interface {
	// PublishAs returns nil when all events are acknowledged. It records deletes with the operator who sent them.
	PublishAs(ctx context.Context, operator string, lines []schemas.Line) error
}

// accepted is the answer of POST /v1/events.
type accepted struct {
	Accepted int `json:"accepted"`
}

// events publishes the lines of the body, all or none: one bad line rejects the request. It answers after the broker has
// acknowledged every event. A repeat has no second effect, because events have ids.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(parametersOf(r).err(), checkContent(r, "application/x-ndjson")); err != nil {
		return err
	}
	body, err := s.receive(w, r, int64(s.cfg.MaxEventsBytes), linesBuffer, s.lines)
	if err != nil {
		return err
	}
	defer body.share.End()
	lines, deletes, err := s.readLines(body)
	if err != nil {
		return err
	}
	if err := s.checkEvents(r.Context(), lines); err != nil {
		return err
	}
	if err := s.publish(r.Context(), lines, deletes); err != nil {
		return err
	}
	s.auditDeletes(r.Context(), w.Header().Get(requestID), lines)
	return writeJSON(w, http.StatusAccepted, accepted{len(lines)})
}

func (s *Server) publish(ctx context.Context, lines []schemas.Line, deletes []userDelete) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PublishTimeout)
	defer cancel()
	if err := s.checkDeletes(ctx, lines, deletes); err != nil {
		return err
	}
	err := s.deps.Publisher.PublishAs(ctx, operatorOf(ctx).name, lines)
	var uncertain *topics.PublishError
	if errors.As(err, &uncertain) {
		return unavailable("the broker has not acknowledged every event; send them again").because(err)
	}
	return err
}

// linesBuffer is the size of the buffer for a body of events, in bytes.
const linesBuffer = 16 << 10

// readLines parses and validates every line of the body, and returns which of them delete users. It skips blank lines.
func (s *Server) readLines(body io.Reader) (lines []schemas.Line, deletes []userDelete, err error) {
	var (
		now = schemas.MicrosOf(s.deps.Now())
		in  = schemas.NewLineReader(body, linesBuffer)
		bad badLines
	)
	for n := 1; ; n++ {
		text, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, deletes, bad.err(len(lines))
		case err != nil && !errors.Is(err, schemas.ErrLongLine):
			return nil, nil, readError(err)
		case err == nil && len(text) == 0:
			continue
		case len(lines)+len(bad.listed) == s.cfg.MaxEvents:
			return nil, nil, problem(http.StatusRequestEntityTooLarge, "more than %d events", s.cfg.MaxEvents)
		}
		line, err := s.parseLine(text, err, now)
		if err != nil {
			bad.add(n, err)
			continue
		}
		if deletesUser(line) {
			deletes = append(deletes, userDelete{n, len(lines), line.User()})
		}
		lines = append(lines, line)
	}
}

// parseLine returns the event of a line that could be read.
func (s *Server) parseLine(text []byte, read error, now schemas.Micros) (schemas.Line, error) {
	if read != nil {
		return schemas.Line{}, read
	}
	line, err := schemas.ParseLine(text)
	if err == nil {
		err = line.Validate(now, s.deps.Verbs())
	}
	return line, err
}

// maxListed limits the length of the problems in an answer, in bytes. Beyond it, the answer contains only the numbers of the
// lines.
const maxListed = 4 << 20

// badLines collects the problems by line.
type badLines struct {
	listed []string
	bytes  int
}

func (b *badLines) add(line int, problem error) {
	text := fmt.Sprintf("line %d: %v", line, problem)
	if b.bytes += len(text); b.bytes > maxListed {
		text = fmt.Sprintf("line %d", line)
	}
	b.listed = append(b.listed, text)
}

// err returns a 400 if a line is bad, or if there is no line at all.
func (b *badLines) err(good int) error {
	switch {
	case len(b.listed) == 1:
		p := problem(http.StatusBadRequest, "%s; nothing was published", b.listed[0])
		p.Errors = b.listed
		return p
	case len(b.listed) > 1:
		p := problem(http.StatusBadRequest, "%d lines are bad; nothing was published", len(b.listed))
		p.Errors = b.listed
		return p
	case good == 0:
		return problem(http.StatusBadRequest, "the body has no event")
	}
	return nil
}
