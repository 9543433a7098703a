package api

import (
	"errors"
	"mime"
	"net/http"
	"os"
)

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

// readError tells a body that is too large from one that did not arrive in time, and from one whose sender has gone.
func readError(err error) error {
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return problem(http.StatusBadRequest, "the body did not arrive whole")
}
