package eventually

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrue_PollsUntilConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, checks := time.Now(), 0
		True(t, "the tenth check", func() bool { checks++; return checks == 10 })
		if took := time.Since(began); checks != 10 || took > 10*slowest {
			t.Errorf("%d checks took %s", checks, took)
		}
	})
}

func TestTrue_FailsAfterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), &lost{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			True(lost, "doomsday", func() bool { return false })
		}()
		<-ended
		if took := time.Since(began); took < Limit() || took > Limit()+2*slowest {
			t.Errorf("failed after %s, want %s", took, Limit())
		}
		if !strings.Contains(lost.why, "%s: %s") {
			t.Errorf("got %q, want the limit and the condition", lost.why)
		}
	})
}

func TestTrue_DoesNotWaitInFailedTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), &lost{TB: t, failed: true}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			True(lost, "doomsday", func() bool { return false })
		}()
		<-ended
		if took := time.Since(began); took > 0 || !strings.Contains(lost.why, "failed already") {
			t.Errorf("failed after %s with %q, want at once", took, lost.why)
		}
	})
}

// lost records the failure of a test.
type lost struct {
	testing.TB
	failed bool
	why    string
}

func (l *lost) Failed() bool { return l.failed }

func (l *lost) Fatalf(format string, _ ...any) {
	l.why = format
	runtime.Goexit()
}
