package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

const partitions = topics.EmbeddedPartitions

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"broker": topicstest.ServeBroker})
	m.Run()
}

// wire runs a broker in another process. Therefore the CPU time of this process excludes the broker.
type wire struct {
	*topicstest.Cluster
	b      *testing.B
	broker int // process id
}

func newWire(b *testing.B) *wire {
	b.Helper()
	c, p := topicstest.Child(b, filepath.Join(b.TempDir(), "broker"), partitions)
	c.Apply()
	return &wire{c, b, p.Process.Pid}
}

// cpuOf returns the CPU time that a process has used.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	must.OK(b, err)
	_, rest, _ := strings.Cut(string(text), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond // USER_HZ is 100 on Linux
	var sum time.Duration
	for _, field := range fields[user : system+1] {
		n, err := strconv.Atoi(field)
		must.OK(b, err)
		sum += time.Duration(n) * tick
	}
	return sum
}

// held returns the memory of this process.
func held(b *testing.B) measure.Memory {
	b.Helper()
	m, err := measure.Held()
	must.OK(b, err)
	return m
}
