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

// ShutdownTimeout limits the graceful shutdown of a process: the last commits and flushes, and the shutdown of the
// embedded broker, which takes up to 20 seconds. A broken disk can block the flush of a store forever.
const ShutdownTimeout = 45 * time.Second

// RunAndClose runs p and f concurrently until ctx is done or f returns an error, and then closes p. If components are still
// running ShutdownTimeout after ctx is done, it returns an error that names them. They end with the process.
func (p *App) RunAndClose(ctx context.Context, f func(context.Context) error) error {
	stopped := make(chan error, 1)
	go func() {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return p.Run(ctx) })
		group.Go(func() error { return f(ctx) })
		err := group.Wait()
		stopped <- errors.Join(err, p.Close())
	}()
	return stopWithin(ctx, ShutdownTimeout, stopped, func() string { return runningComponents(p.supervisor.State()) })
}

// stopWithin returns the error received from stopped. If none arrives within timeout after ctx is done, it returns an
// error with the text of running.
func stopWithin(ctx context.Context, timeout time.Duration, stopped <-chan error, running func() string) error {
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-stopped:
		return err
	case <-time.After(timeout):
		return fmt.Errorf("shutdown timed out after %s: %s", timeout, running())
	}
}

// runningComponents names the components that are still running, with the last problem of each.
func runningComponents(states []processors.ComponentState) string {
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
		return "a store or the embedded broker is still closing"
	}
	return "still running: " + strings.Join(names, ", ")
}
