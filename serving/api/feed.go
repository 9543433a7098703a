package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
)

const (
	// DefaultLimit is the number of items of an answer without the parameter limit.
	DefaultLimit = 25
	// MaxPoolLimit is the maximum number of candidates of an answer.
	MaxPoolLimit = 1000
	// DefaultFeed is the feed of a visit without the parameter feed.
	DefaultFeed = "home"
)

// feed answers a visit or, with a cursor, an older page. All feeds of a user share the older items, so with a cursor the
// feed's name does not matter.
func (s *Server) feed(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, limit := p.user(), p.limit(DefaultLimit, feed.MaxLimit)
	cursor, name := p.text("cursor"), p.text("feed")
	if err := p.err(); err != nil {
		return err
	}
	if name == "" {
		name = DefaultFeed
	}
	var page feed.Page
	var err error
	if cursor == "" {
		if r.Method == http.MethodHead { // it would mark pins as shown that nobody sees
			return onlyMethods(http.MethodGet)(w, r)
		}
		if err := s.notForeignVisit(r); err != nil {
			return err
		}
		page, err = s.deps.Feed.Visit(r.Context(), user, name, limit)
	} else {
		page, err = s.deps.Feed.Older(r.Context(), user, cursor, limit)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// count is the answer of feed/new, and the data of a stream's events.
type count struct {
	Count int `json:"count"`
}

func (s *Server) waiting(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user := p.user()
	if err := p.err(); err != nil {
		return err
	}
	n, err := s.deps.Feed.Waiting(r.Context(), user)
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the pools cannot be read at the moment"), err)
	}
	return writeJSON(w, http.StatusOK, count{n})
}

// why answers with the state of a pin for a user.
func (s *Server) why(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, pin, name := p.user(), p.pin(), p.text("feed")
	if err := p.err(); err != nil {
		return err
	}
	if name == "" {
		name = DefaultFeed
	}
	answer, err := s.deps.Feed.Why(r.Context(), user, name, pin, callerOf(r).User != "")
	switch {
	case errors.Is(err, schemas.ErrUnknownFeed):
		return err
	case err != nil:
		return fmt.Errorf("%w (%w)", unavailable("the pools cannot be read at the moment"), err)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// feedState answers with the state that a feed keeps for a user, including the candidates that it holds back.
func (s *Server) feedState(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, name := p.user(), p.text("feed")
	if err := p.err(); err != nil {
		return err
	}
	if name == "" {
		name = DefaultFeed
	}
	state, err := s.deps.Feed.FeedState(r.Context(), user, name)
	switch {
	case errors.Is(err, schemas.ErrUnknownFeed):
		return err
	case err != nil:
		return fmt.Errorf("%w (%w)", unavailable("the pools cannot be read at the moment"), err)
	}
	return writeJSON(w, http.StatusOK, state)
}

func (s *Server) pool(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, source, limit := p.user(), p.source(), p.limit(DefaultLimit, MaxPoolLimit)
	if err := p.err(); err != nil {
		return err
	}
	pool, err := s.deps.Feed.Pool(r.Context(), user, source, limit)
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the pools cannot be read at the moment"), err)
	}
	return writeJSON(w, http.StatusOK, pool)
}

// list answers with the publications of a followee.
func list[T ~string](s *Server, name string, parse func(string) (T, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		p := parametersOf(r)
		followee := id(p, name, parse)
		limit, cursor := p.limit(DefaultLimit, feed.MaxLimit), p.text("cursor")
		viewer := p.viewer()
		if err := p.err(); err != nil {
			return err
		}
		page, err := s.deps.Feed.List(r.Context(), schemas.Followee(followee), viewer, cursor, limit)
		if err != nil {
			return err
		}
		return writeCached(w, r, page)
	}
}

func (s *Server) relatedPins(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	pin, limit, viewer := id(p, "pin", schemas.ParsePinID), p.limit(DefaultLimit, feed.MaxLimit), p.viewer()
	if err := p.err(); err != nil {
		return err
	}
	answer, err := s.deps.Feed.RelatedPins(r.Context(), pin, viewer, limit)
	if err != nil {
		return err
	}
	return writeCached(w, r, answer)
}

func (s *Server) relatedInterests(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	interest, limit := id(p, "interest", schemas.ParseInterestID), p.limit(DefaultLimit, feed.MaxLimit)
	if err := p.err(); err != nil {
		return err
	}
	answer, err := s.deps.Feed.RelatedInterests(r.Context(), interest, limit)
	if err != nil {
		return err
	}
	return writeCached(w, r, answer)
}
