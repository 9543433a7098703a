package periodic

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour+time.Minute)
		defer cancel()
		calls, broken := 0, errors.New("broken")
		must.OK(t, Run(ctx, time.Hour, func() error { calls++; return nil }))
		expect.Equal(t, calls, 3, "calls, one at the start and after each hour")
		expect.Is(t, Run(t.Context(), time.Hour, func() error { return broken }), broken, "Run")
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, broken, late := 0, errors.New("broken"), errors.New("late")
		must.OK(t, Until(t.Context(), time.Hour, func() (bool, error) { calls++; return calls == 3, nil }))
		expect.Equal(t, calls, 3, "calls")
		expect.Is(t, Until(t.Context(), time.Hour, func() (bool, error) { return false, broken }), broken, "Until")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		expect.Is(t, Until(ctx, time.Hour, func() (bool, error) { return false, nil }), late, "Until")
	})
}
