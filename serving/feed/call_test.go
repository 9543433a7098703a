package feed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A result that arrived in time is used, however late the caller waits for it: a slow generator must not discard the
// rows of the store.
func TestCall_ReturnsResultThatArrivedBeforeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls sync.WaitGroup
		for range 50 { // a fair select would lose half of the results
			c := begin(t.Context(), newGate("callee", 1, &calls), time.Second, func(context.Context) (int, error) { return 7, nil },
				func(int, error) { t.Error("the result was called late") })
			<-time.After(2 * time.Second)
			expect.Equal(t, must.Get(c.wait())(t), 7, "result")
		}
		calls.Wait()
	})
}

func TestCall_PassesLateResultToCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls sync.WaitGroup
		var late []int
		c := begin(t.Context(), newGate("callee", 1, &calls), time.Second, func(context.Context) (int, error) {
			<-time.After(time.Minute) // ignores its deadline
			return 7, nil
		}, func(n int, err error) { late = append(late, n) })
		expect.Is(t, expect.ErrorOf(c.wait()), context.DeadlineExceeded, "wait")
		calls.Wait()
		same(t, "late", late, []int{7})
	})
}

func TestGate_WaitsForSlotUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls sync.WaitGroup
		g := newGate("callee", 1, &calls)
		first := begin(t.Context(), g, time.Hour, func(context.Context) (int, error) {
			<-time.After(time.Second)
			return 1, nil
		}, nil)
		synctest.Wait()
		started := false
		second := begin(t.Context(), g, 500*time.Millisecond, func(context.Context) (int, error) {
			started = true
			return 2, nil
		}, nil)
		third := begin(t.Context(), g, 2*time.Second, func(context.Context) (int, error) { return 3, nil }, nil)
		if _, err := second.wait(); !errors.Is(err, context.DeadlineExceeded) || started {
			t.Errorf("got %v, started %v, want %v", err, started, context.DeadlineExceeded)
		}
		one, err1 := first.wait()
		three, err3 := third.wait()
		if one != 1 || three != 3 || err1 != nil || err3 != nil {
			t.Errorf("got %d, %v and %d, %v, want 1 and 3", one, err1, three, err3)
		}
		calls.Wait()
		same(t, "in flight", len(g.slots), 0)
	})
}
