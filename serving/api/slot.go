package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"

	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// peerClass is the class of the calls of other processes for the limits of requests in flight.
const peerClass = "peer"

// fixedLimits are the limits that do not follow the load.
func (c Config) fixedLimits() map[string]int {
	return map[string]int{string(stream): c.MaxStreams, string(scraping): maxScrapes, string(trial): maxTrials}
}

// slot is a request's share of the limit of requests in flight. The request releases it while it waits for its body, so
// that slow senders do not occupy the slots of others.
type slot struct {
	gates  *limit.Gates
	class  string // "": no limit
	holder string // the caller, "" while it is unknown or if it has no limit
	held   bool
}

// enter takes a slot for a call of a class. The caller must call leave.
func (s *Server) enter(class string) (*slot, error) {
	p := &slot{gates: s.gates, class: class}
	return p, p.take(s.gates.Enter)
}

// retake takes the slot again. It returns an error if all slots are taken.
func (p *slot) retake() error { return p.take(p.gates.Return) }

func (p *slot) take(enter func(class string) bool) error {
	if p.held = p.class == "" || enter(p.class); !p.held {
		return unavailable("at capacity: too many requests of this kind are in flight")
	}
	return nil
}

// leave returns the slot, if the request has it.
func (p *slot) leave() {
	if p.held && p.class != "" {
		p.gates.Leave(p.class)
	}
	p.held = false
}

// hold takes one of a caller's streams, or of a user's requests, until leave is called. The requests of services and of
// addresses without a token have only the common limit: a service acts for many users, and many clients can share an
// address.
func (s *Server) hold(k kind, c auth.Caller, r *http.Request) (leave func(), err error) {
	who, bounded := holder(c, r)
	switch {
	case k == stream && c.Subject != "" && c.User == "":
		return held(s.serviceStreams, who, "streams")
	case k == stream && bounded:
		return held(s.callerStreams, who, "streams")
	case k == request && c.User != "":
		return held(s.userRequests, who, "requests")
	}
	return func() {}, nil
}

func held(by *limit.Budget, who, what string) (leave func(), err error) {
	share := by.Share(who)
	if share.Grow(1) != nil {
		return nil, problem(http.StatusTooManyRequests, "the caller has too many %s in flight", what).retryIn(1)
	}
	return share.End, nil
}

// holder returns the caller that a stream or body counts for, and whether that caller has a limit.
func holder(c auth.Caller, r *http.Request) (who string, bounded bool) {
	if c.Subject != "" {
		return "t" + c.Subject, true
	}
	who, bounded = limit.AddressOf(r.RemoteAddr)
	return "a" + who, bounded
}

// incoming is the body of a request while it is received. Only the bytes received count against the limits of bodies, not
// the announced length. While the body waits for further bytes, the request releases its slot of the requests in flight.
// The caller must end share when the content of the body is no longer needed.
type incoming struct {
	in    io.Reader
	share *limit.Share
	slot  *slot
	came  int64
}

// receive starts to read a body of at most most bytes. It reserves least bytes, the minimum to read a body, at once. A body
// that announces a greater length, or that exceeds the current limits, is rejected unread.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, most, least int64, room *limit.Budget) (*incoming, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	p := answerOf(r.Context()).slot
	b := &incoming{in: http.MaxBytesReader(w, r.Body, most), share: room.Share(p.holder), slot: p}
	if err := errors.Join(b.share.Fits(r.ContentLength), b.share.Grow(least)); err != nil {
		b.share.End()
		return nil, refusal(err)
	}
	return b, nil
}

// Read waits for bytes without a slot.
func (b *incoming) Read(p []byte) (int, error) {
	b.slot.leave()
	n, err := b.in.Read(p)
	b.came += int64(n)
	if err := b.slot.retake(); err != nil {
		return n, err
	}
	if err := b.share.Grow(b.came); err != nil {
		return n, refusal(err)
	}
	return n, err
}

// refusal returns the answer to a body that exceeds a limit of bodies.
func refusal(err error) error {
	if errors.Is(err, limit.ErrAll) {
		return unavailable("at capacity: too many bytes of request bodies are in flight")
	}
	return problem(http.StatusTooManyRequests, "the caller has too many bytes of request bodies in flight").retryIn(1)
}

// checkContent rejects a body with another content type or with a content encoding. A body without a content type is
// accepted.
func checkContent(r *http.Request, want string) error {
	if packed := r.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return problem(http.StatusUnsupportedMediaType, "content encoding %q is not supported; send the body uncompressed", packed)
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(given); err != nil || media != want {
		return problem(http.StatusUnsupportedMediaType, "content type %q is not supported; want %s", given, want)
	}
	return nil
}

// readError distinguishes a body that is too large or exceeds a limit, one that did not arrive in time, and one whose sender
// disconnected.
func readError(err error) error {
	var tooBig *http.MaxBytesError
	var refused *Problem
	switch {
	case errors.As(err, &tooBig), errors.As(err, &refused):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return problem(http.StatusBadRequest, "the body was not received completely")
}
