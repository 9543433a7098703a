package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
)

// group returns a command with subcommands. Without a subcommand it returns a usage error; see missingCommand.
func group(use, short, example string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: missingCommand}
	cmd.AddCommand(children...)
	return cmd
}

// missingCommand runs a group without a valid subcommand. It returns a *command.UsageError with the subcommands and the
// given arguments.
func missingCommand(cmd *cobra.Command, args []string) error {
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
	return command.Usagef("%s: want one of the commands %s%s", cmd.CommandPath(), strings.Join(names, ", "), given)
}

// noArguments is cobra.NoArgs with a message that quotes the arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: want no arguments, not %q", cmd.CommandPath(), args)
	}
	return nil
}

// usage marks an error as one of the command line or the configuration. It returns nil for nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &command.UsageError{Err: err}
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeWith(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// texts returns strings of another type as strings.
func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}

// completeWith registers a completion function for a flag.
func completeWith(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	// An error means that the flag does not exist. The test of completions checks each flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}

// within returns a context that expires after the value of --timeout. A timeout of 0 or less is a usage error.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	if timeout <= 0 {
		return nil, nil, command.Usagef("--timeout: %s: want above 0", timeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
	return ctx, cancel, nil
}
