package product

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/processors"
)

// EndTimeout bounds the orderly end of a process: the last commits, flushes, and the embedded broker's own close, which has
// 20 seconds. A disk that has gone away can hold a store's flush for ever.
const EndTimeout = 45 * time.Second

// endWithin waits for what ended brings; once ctx has ended, for so long. What has not ended then is left to the end of the
// process, as a kill would, and stuck says what it is.
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

// stuck names the parts that have not ended, with the last that was wrong with each.
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
