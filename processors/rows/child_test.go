package rows

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// roleVariable names the variable that makes the test binary run as one of roles, in another process.
const roleVariable = "ROWS_TEST_ROLE"

func roles() map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{"broker": playBroker, "member": playMember, "locker": playLocker}
}

// playLocker locks the store in the directory ROWS_TEST_DIR until ctx ends.
func playLocker(ctx context.Context) error {
	lock, err := pebble.LockDirectory(os.Getenv("ROWS_TEST_DIR"), vfs.Default)
	if err != nil {
		return err
	}
	fmt.Println("locked")
	<-ctx.Done()
	return lock.Close()
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		parallel(8)
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := roles()[role](ctx); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
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

// playBroker runs an embedded broker on the directory ROWS_TEST_DIR and prints its addresses.
func playBroker(ctx context.Context) error {
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = os.Getenv("ROWS_TEST_DIR"), os.Getenv("ROWS_TEST_KAFKA"), os.Getenv("ROWS_TEST_REGISTRY")
	server, err := embedded.Start(ctx, cfg, nil)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(server.Kafka(testPartitions).Brokers, ","), server.RegistryURL())
	<-ctx.Done()
	return server.Close()
}

// process supports several concurrent waiters. With exec.Cmd, the second one would wait forever.
type process struct {
	*exec.Cmd
	once func() error
}

func (p *process) Wait() error { return p.once() }

// child starts this binary in a role. It is killed at the end of the test.
func child(t testing.TB, role string, env ...string) *process {
	t.Helper()
	cmd := &process{Cmd: exec.Command(os.Args[0])}
	cmd.once = sync.OnceValue(cmd.Cmd.Wait)
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	cmd.Stderr = t.Output()
	t.Cleanup(func() {
		if cmd.Process == nil {
			return
		}
		if t.Failed() { // it prints its goroutines
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			time.Sleep(time.Second)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// newRemoteWire is newWire with a broker in another process: the one that realKafka names, or an embedded one.
func newRemoteWire(t testing.TB) *wire {
	t.Helper()
	if os.Getenv(realKafka) != "" {
		return newRealWire(t)
	}
	return newTortureWire(t, t.TempDir())
}

// serve starts a broker process on a directory.
func (w *wire) serve(t testing.TB, dir, kafka, registry string) {
	t.Helper()
	w.broker = child(t, "broker", "ROWS_TEST_DIR="+dir, "ROWS_TEST_KAFKA="+kafka, "ROWS_TEST_REGISTRY="+registry)
	out := must.Get(w.broker.StdoutPipe())(t)
	must.OK(t, w.broker.Start())
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	brokers, url, _ := strings.Cut(strings.TrimSpace(line), " ")
	w.kafka = topics.Kafka{Brokers: strings.Split(brokers, ","), Partitions: testPartitions, Embedded: true}
	w.registry = url
}

func (w *wire) connect(t testing.TB) {
	t.Helper()
	var err error
	if w.client, err = w.kafka.Client(manual, kgo.RecordDeliveryTimeout(0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	w.admin = kadm.NewClient(w.client)
	registry := must.Get(schemas.NewRegistry(w.registry))(t)
	eventually.True(t, "the registry answers", func() bool { // on a busy machine, a request may take its five seconds
		w.streams, err = topics.Open(t.Context(), registry)
		return !errors.Is(err, schemas.ErrRegistryUnavailable)
	})
	must.OK(t, err)
}
