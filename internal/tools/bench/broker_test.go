package bench

import (
	"path/filepath"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
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
