package topics_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

func TestConcurrently_LimitsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, calls atomic.Int64
		err := topics.Concurrently(t.Context(), 20, func(context.Context, int) error {
			calls.Add(1)
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second) // in the bubble
			running.Add(-1)
			return nil
		})
		must.OK(t, err)
		expect.Equal(t, [2]int64{calls.Load(), most.Load()}, [2]int64{20, 8}, "calls, and calls at a time")
	})
}

func TestConcurrently_ErrorEndsOtherCalls(t *testing.T) {
	cause := errors.New("no owner")
	err := topics.Concurrently(t.Context(), 2, func(ctx context.Context, i int) error {
		if i == 0 {
			return cause
		}
		<-ctx.Done()
		return ctx.Err()
	})
	expect.Is(t, err, cause, "error")
}
