// Package must ends tests at unexpected errors and results.
package must

import (
	"cmp"
	"errors"
	"fmt"
)

// T is a *testing.T, *testing.B, *testing.F or *rapid.T.
type T interface {
	Helper()
	Fatal(args ...any)
}

// OK ends the test if err is not nil.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, and ends the test if err is not nil: must.Get(os.ReadFile(name))(t).
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// As returns the error of a type in the tree of err, and ends the test if there is none: must.As[*fs.PathError](t, err).
func As[E error](t T, err error) (as E) {
	t.Helper()
	if !errors.As(err, &as) {
		t.Fatal(fmt.Sprintf("got error %v, want a %T", err, as))
	}
	return as
}

// Equal ends the test if got is not want. format and args describe the result.
func Equal[V comparable](t T, got, want V, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Fatal(fmt.Sprintf(format, args...)+":", fmt.Sprintf("got %+v, want %+v", got, want))
	}
}

// AtLeast ends the test if got is less than least.
func AtLeast[V cmp.Ordered](t T, got, least V, format string, args ...any) {
	t.Helper()
	if got < least {
		t.Fatal(fmt.Sprintf(format, args...)+":", fmt.Sprintf("got %v, want at least %v", got, least))
	}
}
