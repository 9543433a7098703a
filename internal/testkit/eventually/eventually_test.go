package eventually

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		True(t, "the tenth look", func() bool { looks++; return looks == 10 })
		if took := time.Since(began); looks != 10 || took > 10*slowest {
			t.Errorf("%d looks took %s", looks, took)
		}
	})
}

func TestTrueGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), &lost{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			True(lost, "doomsday", func() bool { return false })
		}()
		<-ended
		if took := time.Since(began); took < Limit() || took > Limit()+2*slowest {
			t.Errorf("gave up after %s, want %s", took, Limit())
		}
		if !strings.Contains(lost.why, "%s: %s") {
			t.Errorf("got %q, want that it says how long, and for what", lost.why)
		}
	})
}

func TestTrue_DoesNotWaitInATestThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), &lost{TB: t, failed: true}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			True(lost, "doomsday", func() bool { return false })
		}()
		<-ended
		if took := time.Since(began); took > 0 || !strings.Contains(lost.why, "failed already") {
			t.Errorf("gave up after %s with %q, want at once", took, lost.why)
		}
	})
}

// lost is a test that may fail.
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
