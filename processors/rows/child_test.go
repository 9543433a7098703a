package rows

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
)

// playLocker locks the store in the directory args[0] until ctx ends.
func playLocker(ctx context.Context, args []string) error {
	lock, err := pebble.LockDirectory(args[0], vfs.Default)
	if err != nil {
		return err
	}
	fmt.Println("locked")
	<-ctx.Done()
	return lock.Close()
}

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"broker": topicstest.ServeBroker, "member": playMember, "locker": playLocker})
	parallel(8)
	m.Run()
}

// parallel runs n tests in parallel, more than there are CPUs, because they mostly wait for timers. A flag on the command
// line takes precedence.
func parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}

// newRemoteWire is newWire with a broker in another process: the one that realKafka names, or an embedded one.
func newRemoteWire(t testing.TB) *wire {
	t.Helper()
	if os.Getenv(realKafka) != "" {
		return newRealWire(t)
	}
	return newTortureWire(t, t.TempDir())
}
