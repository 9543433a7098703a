package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// Feed answers visits, pages and lists, as feed.Service does.
type Feed interface {
	// Pages of a user's feed.

	Visit(ctx context.Context, user schemas.UserID, feed string, limit int) (feed.Page, error)
	VisitOnce(ctx context.Context, user schemas.UserID, feed string, limit int, key string) (feed.Page, error)
	Peek(ctx context.Context, user schemas.UserID, feed string, limit int) (feed.Page, error)
	Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (feed.Page, error)
	Waiting(ctx context.Context, user schemas.UserID) (int, error)

	// Published pins, for a viewer or, with "", for no particular user.

	List(ctx context.Context, followee schemas.Followee, viewer schemas.UserID, cursor string, limit int) (feed.ListPage, error)
	RelatedPins(ctx context.Context, pin schemas.PinID, viewer schemas.UserID, limit int) (feed.RelatedPins, error)
	RelatedInterests(ctx context.Context, interest schemas.InterestID, limit int) (feed.RelatedInterests, error)

	// The state from which a user's feed is composed.

	Why(ctx context.Context, user schemas.UserID, feed string, pin schemas.PinID, masked bool) (*schemas.Why, error)
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

const (
	// DefaultLimit is the number of items of an answer without the parameter limit.
	DefaultLimit = 25
	// MaxPoolLimit is the maximum number of candidates of an answer.
	MaxPoolLimit = 1000
	// DefaultFeed is the feed of a visit without the parameter feed.
	DefaultFeed = "home"
)

// feed answers a visit, a peek or, with a cursor, an older page. All feeds of a user share the older items, so with a cursor
// the feed's name does not matter.
func (s *Server) feed(p *parameters) computation {
	user, limit := p.user(), p.limit(DefaultLimit, feed.MaxLimit)
	cursor, name, peek := p.text("cursor"), p.feed(), p.boolean("peek")
	return func(ctx context.Context) (any, error) {
		switch {
		case cursor != "":
			return s.deps.Feed.Older(ctx, user, cursor, limit)
		case peek:
			return s.deps.Feed.Peek(ctx, user, name, limit)
		case p.r.Method == http.MethodHead: // it would mark pins as shown that no client receives
			return nil, onlyMethods(p.r, http.MethodGet)
		}
		// A visit changes something although it is a GET, and an image on any page is a GET. A browser does not add a bearer
		// token on its own.
		if s.deps.Auth == nil && foreign.Page(p.r) {
			return nil, crossSite()
		}
		if onlyViews(ctx, auth.Feed) {
			return nil, problem(http.StatusForbidden, "a visit requires the scope %s; with the scope %s, set peek=true", auth.Feed, auth.View)
		}
		return s.deps.Feed.Visit(ctx, user, name, limit)
	}
}

// visit answers a visit. With a key, a repeated request shows no further new items.
func (s *Server) visit(p *parameters) computation {
	user, name, limit, key := p.user(), p.feed(), p.limit(DefaultLimit, feed.MaxLimit), p.idempotencyKey()
	return func(ctx context.Context) (any, error) {
		if key == "" {
			return s.deps.Feed.Visit(ctx, user, name, limit)
		}
		return s.deps.Feed.VisitOnce(ctx, user, name, limit, key)
	}
}

func (s *Server) waiting(p *parameters) computation {
	user := p.user()
	return func(ctx context.Context) (any, error) {
		n, err := s.deps.Feed.Waiting(ctx, user)
		return map[string]int{"count": n}, err
	}
}

// why answers with the state of a pin for a user.
func (s *Server) why(p *parameters) computation {
	user, pin, name, masked := p.user(), p.pin(), p.feed(), answerOf(p.r.Context()).caller.User != ""
	return func(ctx context.Context) (any, error) { return s.deps.Feed.Why(ctx, user, name, pin, masked) }
}

// feedState answers with the state that a feed keeps for a user, including the candidates that it defers.
func (s *Server) feedState(p *parameters) computation {
	user, name := p.user(), p.feed()
	return func(ctx context.Context) (any, error) { return s.deps.Feed.FeedState(ctx, user, name) }
}

func (s *Server) pool(p *parameters) computation {
	user, source, limit := p.user(), p.source(), p.limit(DefaultLimit, MaxPoolLimit)
	return func(ctx context.Context) (any, error) { return s.deps.Feed.Pool(ctx, user, source, limit) }
}

// pinsOf answers with the publications of a followee.
func pinsOf[T ~string](s *Server, name string, parse func(string) (T, error)) query {
	return func(p *parameters) computation {
		followee, viewer := schemas.Followee(id(p, name, parse)), p.viewer()
		limit, cursor := p.limit(DefaultLimit, feed.MaxLimit), p.text("cursor")
		return func(ctx context.Context) (any, error) { return s.deps.Feed.List(ctx, followee, viewer, cursor, limit) }
	}
}

func (s *Server) relatedPins(p *parameters) computation {
	pin, limit, viewer := id(p, "pin", schemas.ParsePinID), p.limit(DefaultLimit, feed.MaxLimit), p.viewer()
	return func(ctx context.Context) (any, error) { return s.deps.Feed.RelatedPins(ctx, pin, viewer, limit) }
}

func (s *Server) relatedInterests(p *parameters) computation {
	interest, limit := id(p, "interest", schemas.ParseInterestID), p.limit(DefaultLimit, feed.MaxLimit)
	return func(ctx context.Context) (any, error) { return s.deps.Feed.RelatedInterests(ctx, interest, limit) }
}

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
