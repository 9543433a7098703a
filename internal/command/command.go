// Package command has errors and formats that commands share.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
)

// UsageError is a mistake on the command line or in the configuration. The program exits with the code for wrong usage.
type UsageError struct{ Err error }

// Error returns the text of the mistake.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef formats a *UsageError like fmt.Errorf.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// PrintJSON prints v as JSON, indented by two.
func PrintJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Count formats a number with its noun, in the plural for every number but 1: "1 event", "2 events".
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Operator returns the given name, or the login name and host of the current user if it is empty.
func Operator(given string) string {
	if given != "" {
		return given
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
