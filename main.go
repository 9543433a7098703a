// Command smartfeed is a home feed and near-real-time features from one stream of events. `smartfeed dev` runs all of
// it in one process on embedded parts; `smartfeed help` lists the rest.
//
// The exit code is 0 for success, 1 for a failure, and 2 for an invalid command line or configuration. The commands are
// in package internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/smartfeed/smartfeed/internal/cli"
)

func main() {
	keepFilesPrivate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
