package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/processors"
)

// EndTimeout limits the orderly shutdown of a process: the last commits, flushes, and the embedded broker's own
// shutdown, which takes up to 20 seconds. A broken disk can block a store's flush forever.
const EndTimeout = 45 * time.Second

// endWithin returns the error from ended. Once ctx is done, it waits at most timeout. Parts that are still running then
// end with the process, as with a kill, and stuck names them.
func endWithin(ctx context.Context, timeout time.Duration, ended <-chan error, stuck func() string) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("not ended within %s: %s", timeout, stuck())
	}
}

// stuck names the parts that are still running, with the last problem of each.
func stuck(states []processors.PartState) string {
	var names []string
	for _, s := range states {
		if s.Condition == processors.Ended || s.Condition == processors.Failed || s.Condition == processors.Idle {
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
	return "still at work: " + strings.Join(names, ", ")
}
