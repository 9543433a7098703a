package memory

import (
	"runtime"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
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
	expect.Between(t, after.Resident-before.Resident, more*3/4, more*6, "growth of resident memory in MiB after %d MiB were written", more)
	expect.AtLeast(t, after.Peak, after.Resident, "peak of the memory in MiB")
}
