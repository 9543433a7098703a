package eventually

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestTrue_FailsAfterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), &lost{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			True(lost, "doomsday", func() bool { return false })
		}()
		<-ended
		expect.Between(t, time.Since(began), Limit(), Limit()+2*slowest, "time until the failure")
		expect.Contains(t, lost.why, "%s: %v", "limit and condition")
	})
}

// lost records the failure of a test.
type lost struct {
	testing.TB
	why string
}

func (l *lost) Failed() bool { return false }

func (l *lost) Fatalf(format string, _ ...any) {
	l.why = format
	runtime.Goexit()
}
