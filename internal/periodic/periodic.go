// Package periodic repeats a task.
package periodic

import (
	"context"
	"time"
)

// Run calls do at once and then after each interval, until ctx is done or do fails. It returns the error of do, or nil.
func Run(ctx context.Context, every time.Duration, do func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := do(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
