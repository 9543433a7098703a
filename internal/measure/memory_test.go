package measure

import (
	"runtime"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Written memory is resident.
func TestHeld_GrowsWithWrittenMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux says what a process holds")
	}
	before, err := Held()
	must.OK(t, err)
	const more = 64 // MiB
	written := make([]byte, more<<20)
	for i := 0; i < len(written); i += 1 << 10 {
		written[i] = 1
	}
	after, err := Held()
	must.OK(t, err)
	runtime.KeepAlive(written)
	// The race detector adds two bytes for each. A size in bytes read as KiB would be a thousand times too large.
	if grown := after.Resident - before.Resident; grown < more*3/4 || grown > more*6 {
		t.Errorf("%.0f MiB more are held after %d were written", grown, more)
	}
	if after.Peak < after.Resident {
		t.Errorf("%.0f MiB are held, and %.0f at most were", after.Resident, after.Peak)
	}
}
