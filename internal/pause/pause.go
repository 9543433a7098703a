// Package pause waits for a time that may end early.
package pause

import (
	"context"
	"time"
)

// For returns true after d, false as soon as ctx ends. A d of 0 or less is over at once, but for a ctx that has ended.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil || d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
