package cassandratest

import (
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	const ms = time.Millisecond
	var l line
	now := time.Now()
	wait := func(after, want time.Duration) {
		t.Helper()
		if got := l.wait(now.Add(after)); got != want {
			t.Errorf("after %s: wait %s, want %s", after, got, want)
		}
	}
	wait(0, 0) // there is none
	wait(0, 0)
	l.open(4)
	wait(0, 0)
	wait(0, 250*ms)
	wait(100*ms, 400*ms)
	wait(2000*ms, 0) // all are gone
	for range 4 {
		l.wait(now.Add(2000 * ms))
	}
	wait(2000*ms, Longest) // the fifth place is a second and a quarter away
	wait(2000*ms, Longest)
	l.open(0)
	wait(2000*ms, 0)
}
