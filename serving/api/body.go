package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"

	"github.com/smartfeed/smartfeed/serving/limit"
)

// incoming is the body of a request that is on its way. What has come of it is taken off what bodies may have, and nothing is
// for what is announced; while more is waited for, the request has no place among those that are worked off. End it when
// what was made of it is no longer needed.
type incoming struct {
	in    io.Reader
	share *limit.Share
	place *place
	came  int64
}

// receive begins to read a body of at most so many bytes. What it takes to read it at all, the least, is taken at once. A body
// that is told to be too large, or for which there is no room now, is refused unread.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, most, least int64, room *limit.Budget) (*incoming, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	p, _ := r.Context().Value(placeKey{}).(*place)
	b := &incoming{in: http.MaxBytesReader(w, r.Body, most), share: room.Share(p.holder), place: p}
	if err := errors.Join(b.share.Fits(r.ContentLength), b.share.Grow(least)); err != nil {
		b.share.End()
		return nil, refusal(err)
	}
	return b, nil
}

// Read waits without a place.
func (b *incoming) Read(p []byte) (int, error) {
	b.place.leave()
	n, err := b.in.Read(p)
	b.came += int64(n)
	if err := b.place.again(); err != nil {
		return n, err
	}
	if err := b.share.Grow(b.came); err != nil {
		return n, refusal(err)
	}
	return n, err
}

// refusal is the answer to a body that there is no room for.
func refusal(err error) error {
	if errors.Is(err, limit.ErrAll) {
		return unavailable("as many bytes of bodies are being worked off as there is room for")
	}
	p := problem(http.StatusTooManyRequests, "as many bytes of bodies of one caller are being worked off as one may send")
	p.retryAfter = 1
	return p
}

// checkContent refuses a body that says it is something else, or that is packed. A body that says nothing is taken for
// what is wanted.
func checkContent(r *http.Request, want string) error {
	if packed := r.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return problem(http.StatusUnsupportedMediaType, "the body is packed with %q; it must not be", packed)
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(given); err != nil || media != want {
		return problem(http.StatusUnsupportedMediaType, "the body is %q; wanted is %s", given, want)
	}
	return nil
}

// readError tells a body that is too large, or that there is no room for, from one that did not arrive in time, and from one
// whose sender has gone.
func readError(err error) error {
	var tooBig *http.MaxBytesError
	var refused *Problem
	switch {
	case errors.As(err, &tooBig), errors.As(err, &refused):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return problem(http.StatusBadRequest, "the body did not arrive whole")
}
