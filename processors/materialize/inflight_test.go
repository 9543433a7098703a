package materialize

import (
	"testing"
	"time"
)

// Failed records that are not read again belong to another process, so their age is no longer reported.
func TestInFlight_ForgetsRecordsNotReadAgain(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	at := func(after time.Duration) time.Time { return start.Add(after) }
	var h inFlight
	check := func(when string, after, want time.Duration) {
		t.Helper()
		if got := h.age(at(after)); got != want {
			t.Errorf("%s: age %s, want %s", when, got, want)
		}
	}
	h.runStarted(start)
	check("no records read", time.Hour, 0)
	h.recordsRead(at(-time.Minute))
	check("a write that hangs", 24*time.Hour, 24*time.Hour+time.Minute)
	h.writeFailed(at(24 * time.Hour))
	check("a write that failed", 24*time.Hour+time.Second, 24*time.Hour+time.Minute+time.Second)
	h.runStarted(at(24*time.Hour + rereadTimeout))
	check("within the reread timeout", 24*time.Hour+2*rereadTimeout, 24*time.Hour+2*rereadTimeout+time.Minute)
	check("after the reread timeout", 24*time.Hour+2*rereadTimeout+1, 0)
	h.recordsRead(at(48 * time.Hour))
	check("a record with a future time", 47*time.Hour, 0)
	check("a later time", 49*time.Hour, time.Hour)
	h.released()
	check("after the write", 49*time.Hour, 0)
}
