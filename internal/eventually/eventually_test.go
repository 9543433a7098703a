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
		if took := time.Since(began); took < Patience || took > Patience+2*slowest {
			t.Errorf("gave up after %s, want %s", took, Patience)
		}
		if !strings.Contains(lost.why, "%s: %s") {
			t.Errorf("got %q, want that it says how long, and for what", lost.why)
		}
	})
}

// lost is a test that may fail.
type lost struct {
	testing.TB
	why string
}

func (l *lost) Fatalf(format string, _ ...any) {
	l.why = format
	runtime.Goexit()
}
