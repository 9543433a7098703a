// Command smartfeed is a home feed and near-real-time features from one stream of events. `smartfeed dev` runs all of
// it in one process on embedded parts; `smartfeed help` lists the rest.
//
// The exit code is 0 when done, 1 when something failed, 2 when the command line or the configuration is wrong. All that
// the commands do is in package product.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/smartfeed/smartfeed/app"
)

func main() {
	keepFilesPrivate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := app.Execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
