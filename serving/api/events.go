package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Publisher publishes events.
type Publisher interface {
	// PublishAs returns nil when all events are acknowledged. It records deletes with the operator who sent them.
	PublishAs(ctx context.Context, operator string, lines []schemas.Line) error
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
	return writeJSON(w, http.StatusAccepted, map[string]int{"accepted": len(lines)})
}

func (s *Server) publish(ctx context.Context, lines []schemas.Line, deletes []userDelete) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PublishTimeout)
	defer cancel()
	if err := s.checkDeletes(ctx, lines, deletes); err != nil {
		return err
	}
	err := s.deps.Publisher.PublishAs(ctx, answerOf(ctx).operator(), lines)
	if _, uncertain := errors.AsType[*topics.PublishError](err); uncertain {
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

// KnownUsers reports whether users are known.
type KnownUsers interface {
	// Known reports whether the processors have any data of a user, or the user was deleted before.
	Known(ctx context.Context, user schemas.UserID) (bool, error)
}

// Every process keeps the id of each deleted user in memory for good. Therefore a request can delete only known users.
const (
	// maxUserDeletes limits the deletes of users in one request.
	maxUserDeletes = 100

	// knownTimeout limits the time of all checks of a request.
	knownTimeout = 3 * time.Second

	// arrivalTime is how long the first events of a user may take to be processed. Until then, unknown users are checked
	// again every knownEvery.
	arrivalTime = time.Second
	knownEvery  = 250 * time.Millisecond
)

// userDelete is an event that deletes a user.
type userDelete struct {
	line int // of the body, from 1
	at   int // number of events before it
	user schemas.UserID
}

// deletesUser reports whether an event deletes a user.
func deletesUser(l schemas.Line) bool {
	_, _, deletes := l.Deletes()
	return deletes && l.Stream == schemas.StreamUsers
}

// checkDeletes rejects deletes of unknown users. A user with another event earlier in the request counts as known.
func (s *Server) checkDeletes(ctx context.Context, lines []schemas.Line, deletes []userDelete) error {
	switch {
	case len(deletes) == 0:
		return nil
	case len(deletes) > maxUserDeletes:
		return problem(http.StatusRequestEntityTooLarge, "more than %d deletes of users; nothing was published", maxUserDeletes)
	case s.deps.Known == nil:
		return problem(http.StatusBadRequest, "this process cannot check that a user is known: send deletes of users to a process that serves feeds; nothing was published")
	}
	unknown, err := s.unknown(ctx, slices.DeleteFunc(deletes, func(d userDelete) bool { return hasEvent(lines[:d.at], d.user) }))
	if err != nil {
		return unavailable("cannot check now that each deleted user is known; nothing was published; send the request again").because(err)
	}
	var bad badLines
	for _, d := range unknown {
		bad.add(d.line, fmt.Errorf("unknown user %s: send the delete again if the first events of the user are recent; "+
			`"smartfeed erase --unknown USER" deletes unknown ids, too`, quote(string(d.user))))
	}
	return bad.err(len(lines))
}

// hasEvent reports whether any of the events is one of the user, other than a delete.
func hasEvent(lines []schemas.Line, user schemas.UserID) bool {
	return slices.ContainsFunc(lines, func(l schemas.Line) bool {
		_, _, deletes := l.Deletes()
		return !deletes && l.User() == user
	})
}

// unknown returns the deletes of users who are still unknown after arrivalTime.
func (s *Server) unknown(ctx context.Context, deletes []userDelete) (unknown []userDelete, err error) {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	arrival, stop := context.WithTimeout(ctx, arrivalTime)
	defer stop()
	for unknown = deletes; ; {
		unknown, err = s.lookUp(ctx, unknown)
		if err != nil || len(unknown) == 0 {
			return unknown, err
		}
		select {
		case <-time.After(knownEvery):
		case <-arrival.Done():
			return unknown, nil
		}
	}
}

// lookUp returns the deletes of users who are unknown now.
func (s *Server) lookUp(ctx context.Context, deletes []userDelete) ([]userDelete, error) {
	return topics.Gather(ctx, len(deletes), func(ctx context.Context, i int) ([]userDelete, error) {
		known, err := s.deps.Known.Known(ctx, deletes[i].user)
		if known {
			return nil, err
		}
		return deletes[i : i+1], err
	})
}
