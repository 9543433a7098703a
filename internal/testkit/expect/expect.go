// Package expect fails tests whose results differ from the expected ones. The tests continue. Each message begins with a
// description, which is a format and its arguments.
package expect

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// T is a *testing.T, *testing.B, *testing.F or *rapid.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal fails the test if got is not want.
func Equal[V comparable](t T, got, want V, format string, args ...any) {
	t.Helper()
	verb := "%+v"
	if _, isText := any(want).(string); isText {
		verb = "%q"
	}
	if got != want {
		t.Errorf("%s: got "+verb+", want "+verb, fmt.Sprintf(format, args...), got, want)
	}
}

// True fails the test if got is false.
func True(t T, got bool, format string, args ...any) {
	t.Helper()
	Equal(t, got, true, format, args...)
}

// False fails the test if got is true.
func False(t T, got bool, format string, args ...any) {
	t.Helper()
	Equal(t, got, false, format, args...)
}

// AtLeast fails the test if got is less than least, or not a number.
func AtLeast[V stdcmp.Ordered](t T, got, least V, format string, args ...any) {
	t.Helper()
	if !(got >= least) {
		t.Errorf("%s: got %v, want at least %v", fmt.Sprintf(format, args...), got, least)
	}
}

// AtMost fails the test if got is more than most, or not a number.
func AtMost[V stdcmp.Ordered](t T, got, most V, format string, args ...any) {
	t.Helper()
	if !(got <= most) {
		t.Errorf("%s: got %v, want at most %v", fmt.Sprintf(format, args...), got, most)
	}
}

// Between fails the test if got is less than least or more than most.
func Between[V stdcmp.Ordered](t T, got, least, most V, format string, args ...any) {
	t.Helper()
	AtLeast(t, got, least, format, args...)
	AtMost(t, got, most, format, args...)
}

// Near fails the test if got differs from want by more than a tolerance, or is not a number.
func Near[V ~float32 | ~float64](t T, got, want, tolerance V, format string, args ...any) {
	t.Helper()
	if !(got >= want-tolerance && got <= want+tolerance) {
		t.Errorf("%s: got %v, want %v within %v", fmt.Sprintf(format, args...), got, want, tolerance)
	}
}

// Empty fails the test if a list has elements.
func Empty[V any](t T, got []V, format string, args ...any) {
	t.Helper()
	if len(got) > 0 {
		t.Errorf("%s: got %+v, want none", fmt.Sprintf(format, args...), got)
	}
}

// NoDiff fails the test if cmp.Diff finds differences.
func NoDiff[V any](t T, got, want V, format string, args ...any) {
	t.Helper()
	NoDiffBut(t, nil, got, want, format, args...)
}

// Contains fails the test if the text does not contain want.
func Contains(t T, text, want, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s: got %.1000s, want %q in it", fmt.Sprintf(format, args...), text, want)
	}
}

// Omits fails the test if the text contains a part.
func Omits(t T, text, part, format string, args ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%s: got %.1000s, want no %q in it", fmt.Sprintf(format, args...), text, part)
	}
}

// Fails fails the test if err is nil.
func Fails(t T, err error, format string, args ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error", fmt.Sprintf(format, args...))
	}
}

// Error fails the test if the message of an error does not contain want. No error is wanted if want is empty.
func Error(t T, err error, want, format string, args ...any) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %q in it", fmt.Sprintf(format, args...), err, want)
	}
}

// Is fails the test unless errors.Is(err, want).
func Is(t T, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// ErrorOf returns the error of a function with another result: expect.Is(t, expect.ErrorOf(os.Open(name)), fs.ErrNotExist, "missing").
func ErrorOf(_ any, err error) error { return err }

// NoDiffBut is NoDiff with options of cmp.Diff.
func NoDiffBut[V any](t T, opts cmp.Option, got, want V, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}
