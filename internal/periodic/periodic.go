// Package periodic repeats a task.
package periodic

import (
	"context"
	"time"
)

// Run calls do at once and then after each interval, until ctx is done or do fails. It returns the error of do, or nil.
func Run(ctx context.Context, every time.Duration, do func() error) (err error) {
	_ = Until(ctx, every, func() (bool, error) { // its only error is that ctx is done
		err = do()
		return err != nil, nil
	})
	return err
}

// Until calls done at once and then after each interval, until it returns true or an error. Until returns that error, or the
// cause if ctx is done before.
func Until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
