package materialize

import (
	"testing"
	"time"
)

// Failed records that are not read again belong to another process, so their age is no longer reported.
func TestWhatIsNoLongerInHandIsForgotten(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	at := func(after time.Duration) time.Time { return begin.Add(after) }
	var h inFlight
	check := func(when string, after, want time.Duration) {
		t.Helper()
		if got := h.age(at(after)); got != want {
			t.Errorf("%s: it is %s old, want %s", when, got, want)
		}
	}
	h.begin(begin)
	check("nothing has come", time.Hour, 0)
	h.take(at(-time.Minute))
	check("a write that hangs", 24*time.Hour, 24*time.Hour+time.Minute)
	h.fail(at(24 * time.Hour))
	check("a write that failed", 24*time.Hour+time.Second, 24*time.Hour+time.Minute+time.Second)
	h.begin(at(24*time.Hour + rereadTimeout))
	check("it may come again", 24*time.Hour+2*rereadTimeout, 24*time.Hour+2*rereadTimeout+time.Minute)
	check("it has not come again", 24*time.Hour+2*rereadTimeout+1, 0)
	h.take(at(48 * time.Hour))
	check("of the future, by a clock that is wrong", 47*time.Hour, 0)
	check("another one", 49*time.Hour, time.Hour)
	h.end()
	check("it is written", 49*time.Hour, 0)
}
