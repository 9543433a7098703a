package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/processors"
)

// ShutdownTimeout limits the orderly shutdown of a process: the last commits, flushes, and the embedded broker's own
// shutdown, which takes up to 20 seconds. A broken disk can block a store's flush forever.
const ShutdownTimeout = 45 * time.Second

// RunAndClose runs p and, at the same time, then, until ctx is done, and closes p. It returns an error that names the
// parts that are still running ShutdownTimeout later; they stop with the process, as with a kill.
func (p *App) RunAndClose(ctx context.Context, then func(context.Context) error) error {
	stopped := make(chan error, 1)
	go func() {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return p.Run(ctx) })
		group.Go(func() error { return then(ctx) })
		err := group.Wait()
		stopped <- errors.Join(err, p.Close())
	}()
	return stopWithin(ctx, ShutdownTimeout, stopped, func() string { return runningParts(p.supervisor.State()) })
}

// stopWithin returns the error from stopped. Once ctx is done, it waits at most timeout; its error then contains the text
// of running.
func stopWithin(ctx context.Context, timeout time.Duration, stopped <-chan error, running func() string) error {
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case err := <-stopped:
		return err
	case <-late.C:
		return fmt.Errorf("not stopped within %s: %s", timeout, running())
	}
}

// runningParts names the components that are still running, with the last problem of each.
func runningParts(states []processors.ComponentState) string {
	var names []string
	for _, s := range states {
		if s.Condition == processors.Stopped || s.Condition == processors.Failed || s.Condition == processors.Idle {
			continue
		}
		name := s.Name
		if s.LastError != "" {
			name += " (" + s.LastError + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "a store or the broker does not close"
	}
	return "still running: " + strings.Join(names, ", ")
}
