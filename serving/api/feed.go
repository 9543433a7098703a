package api

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
)

const (
	defaultLimit = 25
	maxPoolLimit = 1000
	// DefaultFeed is the feed of a visit that names none.
	DefaultFeed = "home"
)

func (s *Server) feed(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, limit := p.user(), p.limit(defaultLimit, feed.MaxLimit)
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
		page, err = s.deps.Feed.Visit(r.Context(), user, name, limit)
	} else {
		page, err = s.deps.Feed.Older(r.Context(), user, cursor, limit)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

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

// pollEvery is how often a stream looks whether its count has changed: a new pin is in its pools within half a second,
// and one more tenth is not noticed.
const pollEvery = 250 * time.Millisecond

// silence is after how long a stream that has nothing to say sends a comment, so that no proxy takes it for dead.
const silence = 15 * time.Second

func (s *Server) waitingStream(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user := p.user()
	if err := p.err(); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("stream new items of %s: %w", user, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not gather events
	w.WriteHeader(http.StatusOK)
	s.streamCounts(w, control, r, user)
	return nil
}

// streamCounts sends the count whenever it has changed, until the caller or the server goes.
func (s *Server) streamCounts(w http.ResponseWriter, control *http.ResponseController, r *http.Request, user schemas.UserID) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last, spoke := -1, time.Now()
	for {
		text := ""
		if n, err := s.deps.Feed.Waiting(r.Context(), user); err == nil && n != last {
			last, text = n, fmt.Sprintf("event: new\ndata: {\"count\":%d}\n\n", n)
		} else if time.Since(spoke) > silence {
			text = ": still here\n\n"
		}
		if text != "" {
			spoke = time.Now()
			if _, err := io.WriteString(w, text); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		}
	}
}

func (s *Server) pool(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	user, limit, source := p.user(), p.limit(defaultLimit, maxPoolLimit), p.text("source")
	if source == "" {
		p.wrong("source is missing: following, interest, or another source")
	}
	if err := p.err(); err != nil {
		return err
	}
	pool, err := s.deps.Pools.Pool(r.Context(), user, schemas.Source(source), limit)
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the pools cannot be read at the moment"), err)
	}
	return writeJSON(w, http.StatusOK, poolAnswer(pool))
}

// poolItem is a candidate as callers see it.
type poolItem struct {
	Pin       schemas.PinID        `json:"pin"`
	Score     float64              `json:"score"`
	Time      time.Time            `json:"time"`
	Author    schemas.UserID       `json:"author"`
	Board     schemas.BoardID      `json:"board,omitempty"`
	Interests []schemas.InterestID `json:"interests,omitempty"`
}

type poolBody struct {
	Source schemas.Source `json:"source"`
	Total  int            `json:"total"`
	Items  []poolItem     `json:"items"`
}

func poolAnswer(pool *schemas.Pool) poolBody {
	body := poolBody{Source: pool.Source, Total: pool.Total, Items: make([]poolItem, len(pool.Items))}
	for i, c := range pool.Items {
		body.Items[i] = poolItem{c.Pin, c.Score, c.Time.Time(), c.Author, c.Board, c.Interests}
	}
	return body
}

// list answers what a followee published.
func list[T ~string](s *Server, name string, parse func(string) (T, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		p := parametersOf(r)
		followee := id(p, name, parse)
		limit, cursor := p.limit(defaultLimit, feed.MaxLimit), p.text("cursor")
		if err := p.err(); err != nil {
			return err
		}
		page, err := s.deps.Feed.List(r.Context(), schemas.Followee(followee), cursor, limit)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, page)
	}
}
