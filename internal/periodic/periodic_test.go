package periodic

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour+time.Minute)
		defer cancel()
		calls, broken := 0, errors.New("broken")
		if err := Run(ctx, time.Hour, func() error { calls++; return nil }); err != nil || calls != 3 {
			t.Errorf("got %d calls, %v, want one at the start and after each hour", calls, err)
		}
		if err := Run(t.Context(), time.Hour, func() error { return broken }); !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of the task", err)
		}
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, broken, late := 0, errors.New("broken"), errors.New("late")
		if err := Until(t.Context(), time.Hour, func() (bool, error) { calls++; return calls == 3, nil }); err != nil || calls != 3 {
			t.Errorf("got %d calls, %v, want three", calls, err)
		}
		if err := Until(t.Context(), time.Hour, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of the task", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		if err := Until(ctx, time.Hour, func() (bool, error) { return false, nil }); !errors.Is(err, late) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}
