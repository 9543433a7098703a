// Command smartfeed turns one stream of events into home feeds and near-real-time features. `smartfeed dev` runs all roles in
// one process with embedded servers; `smartfeed help` lists all commands.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
