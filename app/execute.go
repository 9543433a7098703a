package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
)

// version is set by the linker: the git tag or commit.
var version = "unknown"

// Execute runs a command line, without the program's name, and returns its exit code: 0 for success, 1 for a failure, 2
// for an invalid command line or configuration. When ctx is done, the command shuts down.
func Execute(ctx context.Context, args, environ []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{environ: environ}
	root := p.command()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	addCompletion(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(errOut, "smartfeed: %v\n", err)
	if !p.started || isUsage(err) {
		fmt.Fprintf(errOut, "%q tells how it is used\n", cmd.CommandPath()+" --help")
		return 2
	}
	return 1
}

// isUsage reports whether a command found the error in its own arguments or in the configuration.
func isUsage(err error) bool {
	var usage *command.UsageError
	return errors.As(err, &usage)
}

// noArguments is cobra.NoArgs with a message that quotes the arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), args)
	}
	return nil
}
