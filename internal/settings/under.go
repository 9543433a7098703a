package settings

import (
	"errors"
	"fmt"
)

// Under prepends the name of a nested struct to each of its problems, so that they start with the whole path of a value:
// "pools.cap: …".
func Under(name string, err error) error {
	var out []error
	for _, e := range Split(err) {
		out = append(out, fmt.Errorf("%s.%w", name, e))
	}
	return errors.Join(out...)
}

// Split returns the errors in joined errors, at every depth. It returns none for nil.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, Split(e)...)
	}
	return out
}
