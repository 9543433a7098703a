package rows

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// These benchmarks measure the cost of ten million rows: memory, a restart, and recovery by a new owner. The group runs in
// another process, so that only its own resources are measured.

// elsewhere runs a test of this binary in another process, with the variable set. It returns the lines that the process
// prints. The process ends with it.
func elsewhere(t testing.TB, test, variable, value string) *bufio.Scanner {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe() // the process stops when its standard input ends
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		must(t, in.Close())
		for lines.Scan() {
		}
		must(t, cmd.Wait())
	})
	return lines
}

const largeVariable = "ROWS_TEST_LARGE"

// largeRun describes the task of the other process.
type largeRun struct {
	brokers, registry, group, dir string
	partitions                    int32
	messages                      int // to apply; 0: only become ready
}

func (l largeRun) String() string {
	return fmt.Sprintf("%s %s %s %s %d %d", l.brokers, l.registry, l.group, l.dir, l.partitions, l.messages)
}

// run starts the process and returns its measurements.
func (l largeRun) run(b *testing.B) (m largeMeasure) {
	b.Helper()
	measured := false
	var said []string
	for lines := elsewhere(b, "TestRunLarge", largeVariable, l.String()); lines.Scan(); {
		n, _ := fmt.Sscanf(lines.Text(), largeFormat, &m.ready, &m.cpu, &m.resident, &m.peak)
		measured = measured || n == 4
		said = append(said, lines.Text())
	}
	if !measured {
		b.Fatal("the process has measured nothing:\n" + strings.Join(said, "\n"))
	}
	return m
}

// largeMeasure holds the measurements of a group that is ready and has applied its messages.
type largeMeasure struct {
	ready, cpu     float64 // seconds since the call of Run
	resident, peak float64 // MiB
}

const largeFormat = "measured ready %f cpu %f resident %f peak %f"

// TestRunLarge runs in the process of a largeRun.
func TestRunLarge(t *testing.T) {
	var l largeRun
	if n, _ := fmt.Sscan(os.Getenv(largeVariable), &l.brokers, &l.registry, &l.group, &l.dir, &l.partitions, &l.messages); n != 6 {
		t.Skip(largeVariable + " says nothing to do")
	}
	w := &wire{kafka: topics.Kafka{Brokers: []string{l.brokers}, Partitions: l.partitions, Embedded: true}}
	registry, err := schemas.NewRegistry(l.registry)
	must(t, err)
	w.streams, err = topics.Open(t.Context(), registry)
	must(t, err)
	cfg := DefaultConfig()
	cfg.Dir = l.dir
	r, err := New(cfg, Env{Kafka: w.kafka, Streams: w.streams}, largeGroup(l.group, l.partitions))
	must(t, err)
	began := time.Now()
	stop := start(t, r)
	for !r.Status().Ready {
		time.Sleep(time.Millisecond)
	}
	m := largeMeasure{ready: time.Since(began).Seconds(), cpu: cpu(t).Seconds()}
	for r.Status().Counters.Records < int64(l.messages) {
		time.Sleep(10 * time.Millisecond)
	}
	held, err := measure.Held()
	must(t, err)
	m.resident, m.peak = held.Resident, held.Peak
	fmt.Printf(largeFormat+"\n", m.ready, m.cpu, m.resident, m.peak)
	must(t, stop())
}

// largeGroup returns a group that puts a hundred rows of sixty bytes per message, including the owner.
func largeGroup(name string, partitions int32) Group {
	owners := ownersByPartition(partitions)
	return Group{Name: name, Inputs: []Input{{topic: name + "-in", batched: true, handle: func(tx *Tx, value []byte) error {
		id := binary.BigEndian.Uint64(value)
		var row [17]byte    // kind, score, id
		var facets [31]byte // with 11 bytes of owner and a separator: 60
		row[0] = 'c'
		binary.BigEndian.PutUint64(row[1:], id*2654435761)
		binary.BigEndian.PutUint64(row[9:], id)
		copy(facets[:], strconv.FormatUint(id*11400714819323198485, 36))
		mine := owners[tx.Partition()]
		for i := range uint64(100) {
			if err := tx.Of(mine[(id*7919+i*31)%uint64(len(mine))]).Put(row[:], facets[:]); err != nil {
				return err
			}
		}
		return nil
	}}}}
}

// ownersByPartition returns thirty thousand owners of eleven bytes.
func ownersByPartition(partitions int32) [][]string {
	owners := make([][]string, partitions)
	for i := range 30_000 {
		owner := fmt.Sprintf("user:%06d", i)
		p := topics.Partition(owner, partitions)
		owners[p] = append(owners[p], owner)
	}
	return owners
}

// newLarge starts a broker with the topics of a group and its backlog.
func newLarge(b *testing.B, group string, partitions int32, messages int) largeRun {
	b.Helper()
	w := newTortureWire(b, b.TempDir())
	_, err := w.admin.CreateTopics(b.Context(), partitions, 1, nil, group+"-in", group+"-table")
	must(b, err)
	for i := range messages {
		w.client.Produce(b.Context(), &kgo.Record{
			Topic: group + "-in", Partition: int32(i) % partitions, Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
		}, nil)
	}
	must(b, w.client.Flush(b.Context()))
	return largeRun{brokers: w.kafka.Brokers[0], registry: w.registry, group: group, dir: b.TempDir(), partitions: partitions, messages: messages}
}

// BenchmarkRowsLarge writes ten million rows of sixty bytes in eight partitions. It then restarts the group with its store,
// and finally without it.
func BenchmarkRowsLarge(b *testing.B) {
	const rows = 10_000_000
	l := newLarge(b, "large", 8, rows/100)
	written := l.run(b)
	b.ReportMetric(written.peak, "peak-MiB")
	l.messages = 0
	b.ReportMetric(l.run(b).ready, "warm-start-s")
	l.dir = b.TempDir()
	recovered := l.run(b)
	b.ReportMetric(rows/recovered.ready/1e6, "recovered-Mrows/s")
	b.ReportMetric(recovered.cpu*1e6/rows, "recovered-cpu-µs/row")
	b.ReportMetric(recovered.peak, "recovered-peak-MiB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRowsIdle runs a group with 64 idle partitions.
func BenchmarkRowsIdle(b *testing.B) {
	m := newLarge(b, "idle", 64, 0).run(b)
	b.ReportMetric(m.ready, "ready-s")
	b.ReportMetric(m.resident, "resident-MiB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRowsHandover measures how long a partition emits nothing at 500 records per second: when a member joins, when it
// leaves, and when it is killed, including the session timeout of one second.
func BenchmarkRowsHandover(b *testing.B) {
	w := newTortureWire(b, b.TempDir())
	newMember(b, w)
	d := drive(b, w, 500)
	stalled := func(change func()) float64 {
		d.caughtUp(b, "before a change")
		stalls := watchStalls(d)
		change()
		for range 3 { // until records that were sent after the change are emitted, too
			time.Sleep(time.Second)
			d.caughtUp(b, "after a change")
		}
		return stalls().Seconds()
	}
	var m *member
	b.ReportMetric(stalled(func() { m = newMember(b, w) }), "join-s")
	b.ReportMetric(stalled(func() { m.signal(syscall.SIGTERM) }), "leave-s")
	<-m.done
	stalled(m.start)
	b.ReportMetric(stalled(func() { m.signal(syscall.SIGKILL) }), "kill-s")
	b.ReportMetric(0, "ns/op")
	<-m.done
}
