// Command smartfeed is a home feed and near-real-time features from one stream of events. `smartfeed dev` runs all of
// it in one process on embedded parts; `smartfeed help` lists the rest.
//
// The exit code is 0 when done, 1 when something failed, 2 when the command line or the configuration is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker: the git tag or commit.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args, environ []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{environ: environ}
	root := p.command()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
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

// isUsage tells errors that a command found in its own arguments.
func isUsage(err error) bool {
	var usage interface{ Usage() bool }
	return errors.As(err, &usage) && usage.Usage()
}

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ error }

func (usageError) Usage() bool     { return true }
func (e usageError) Unwrap() error { return e.error }

// noArguments is cobra.NoArgs with a message that says what was given.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), args)
	}
	return nil
}
