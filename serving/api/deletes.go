package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/schemas"
)

// KnownUsers reports whether users are known.
type KnownUsers interface {
	// Known reports whether the processors have any data of a user, or the user was deleted before.
	Known(ctx context.Context, user schemas.UserID) (bool, error)
}

// Every process keeps the id of each deleted user in memory for good. Therefore a request can delete only known users.
const (
	// maxUserDeletes limits the deletes of users in one request, and knownCalls the checks in flight.
	maxUserDeletes = 100
	knownCalls     = 8

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
	known := make([]bool, len(deletes))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(knownCalls)
	for i, d := range deletes {
		g.Go(func() (err error) {
			known[i], err = s.deps.Known.Known(ctx, d.user)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var unknown []userDelete
	for i, d := range deletes {
		if !known[i] {
			unknown = append(unknown, d)
		}
	}
	return unknown, nil
}
