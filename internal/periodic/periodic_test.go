package periodic

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour+time.Minute)
		defer cancel()
		calls, broken := 0, errors.New("broken")
		if err := Run(ctx, time.Hour, func() error { calls++; return nil }); err != nil || calls != 3 {
			t.Errorf("got %d calls, %v, want one at the start and after each hour", calls, err)
		}
		expect.Is(t, Run(t.Context(), time.Hour, func() error { return broken }), broken, "Run")
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, broken, late := 0, errors.New("broken"), errors.New("late")
		if err := Until(t.Context(), time.Hour, func() (bool, error) { calls++; return calls == 3, nil }); err != nil || calls != 3 {
			t.Errorf("got %d calls, %v, want three", calls, err)
		}
		expect.Is(t, Until(t.Context(), time.Hour, func() (bool, error) { return false, broken }), broken, "Until")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		expect.Is(t, Until(ctx, time.Hour, func() (bool, error) { return false, nil }), late, "Until")
	})
}
