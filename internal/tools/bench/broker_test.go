package bench

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

const partitions = topics.EmbeddedPartitions

// brokerDir is the variable with the directory if the test binary runs as the broker.
const brokerDir = "BENCH_BROKER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(brokerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := playBroker(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

// playBroker serves an embedded broker and prints its address.
func playBroker(ctx context.Context, dir string) error {
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", "127.0.0.1:0"
	server, err := embedded.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(server.Kafka(partitions).Brokers, ","), server.RegistryURL())
	<-ctx.Done()
	return server.Close()
}

// wire is a broker in its own process, so that the CPU time of this process is that of the work alone.
type wire struct {
	b       *testing.B
	kafka   topics.Kafka
	streams *topics.Streams
	broker  int // process id
}

func newWire(b *testing.B) *wire {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerDir+"="+filepath.Join(b.TempDir(), "broker"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)
	brokers, url, _ := strings.Cut(strings.TrimSpace(line), " ")
	w := &wire{b: b, broker: cmd.Process.Pid}
	w.kafka = topics.Kafka{Brokers: strings.Split(brokers, ","), Partitions: partitions, Embedded: true}
	_, err = topics.Apply(b.Context(), w.kafka, topics.Catalogue(topics.Profile{Partitions: partitions, Embedded: true}))
	must(b, err)
	registry, err := schemas.NewRegistry(url)
	must(b, err)
	w.streams, err = topics.Open(b.Context(), registry)
	must(b, err)
	return w
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// cpuOf returns the CPU time that a process has used.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond // USER_HZ is 100 on Linux
	var sum time.Duration
	for _, field := range fields[user : system+1] {
		n, err := strconv.Atoi(field)
		must(b, err)
		sum += time.Duration(n) * tick
	}
	return sum
}

// held returns the memory of this process.
func held(b *testing.B) measure.Memory {
	b.Helper()
	m, err := measure.Held()
	must(b, err)
	return m
}
