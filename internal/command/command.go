// Package command has what command lines are made of, so that all of them answer alike. It is a leaf: every layer may import
// it.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a mistake on the command line or in the configuration: the program ends with its exit code for wrong usage.
type UsageError struct{ Err error }

// Error is the mistake as it is.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef formats a *UsageError as fmt.Errorf does.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Group returns a command that only holds others. By itself it is wrong usage, see Missing.
func Group(use, short, example string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: Missing}
	cmd.AddCommand(children...)
	return cmd
}

// Missing is what a Group answers: a *UsageError that names the commands it has, and what was given instead of one.
func Missing(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	given := ""
	if len(args) > 0 {
		given = fmt.Sprintf(", not %q", args)
	}
	return Usagef("%s needs one of its commands: %s%s", cmd.CommandPath(), strings.Join(names, ", "), given)
}

// PrintJSON prints v for programs, indented by two.
func PrintJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Count is a number with its noun, in the plural for every number but 1: "1 event", "2 events".
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Operator returns the given name, or if it is empty the login name and host of whoever runs the command.
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
