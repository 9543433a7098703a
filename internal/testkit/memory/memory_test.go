package memory

import (
	"runtime"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestHeld_GrowsWithWrittenMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/status of Linux")
	}
	before := must.Get(Held())(t)
	const more = 64 // MiB
	written := make([]byte, more<<20)
	for i := 0; i < len(written); i += 1 << 10 {
		written[i] = 1
	}
	after := must.Get(Held())(t)
	runtime.KeepAlive(written)
	// The race detector adds two bytes per byte. A size in bytes read as KiB would be a thousand times too large.
	if grown := after.Resident - before.Resident; grown < more*3/4 || grown > more*6 {
		t.Errorf("resident memory has grown by %.0f MiB after %d MiB were written", grown, more)
	}
	if after.Peak < after.Resident {
		t.Errorf("resident memory of %.0f MiB exceeds the peak of %.0f MiB", after.Resident, after.Peak)
	}
}
