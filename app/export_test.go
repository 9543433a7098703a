package app

import (
	"context"
	"io"

	"log/slog"
)

// Execute runs a command line. TestMain sets it to cli.Execute, because a test of this package cannot import package cli.
var Execute func(ctx context.Context, args, environ []string, in io.Reader, out, errOut io.Writer) int

// RunMain runs the program if childVariable is set, and otherwise the tests.
var RunMain = runMain

// openApp opens parts without extensions.
func openApp(ctx context.Context, cfg Config, log *slog.Logger, parts []opener) (*App, error) {
	return openParts(ctx, Options{Config: cfg, Log: log}, parts)
}
