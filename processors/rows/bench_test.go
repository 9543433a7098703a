package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/eventually"
	"github.com/smartfeed/smartfeed/topics"
)

// BenchmarkRows works off a backlog, the broker in a process of its own, and reports the CPU time that this process
// spends on a row, beside the same rows moved by a bare franz-go and Pebble loop with a transaction a batch.
//
// Allocations: none for a row, which lies in its batch's arena and in a record that the next transaction uses again.
// Those counted are of the input record: one of sarama's, six of Goka's (message, context, headers), one to hand its bytes
// on as an any, and two of the callback here. The bare loop has four a row: key, value, record, and what franz-go keeps
// of it.
//
// It fails when a row costs more than most times what it costs the bare loop: 1.2, 1.4 and 1.0 times with nothing else
// running, and up to twice on a busy machine. Time of processors is asserted, time that passes is only told.
//
//	go test -run=- -bench=Rows ./processors/rows
func BenchmarkRows(b *testing.B) {
	const most = 4
	for _, rows := range []int{1, 10, 100} {
		var group, bare time.Duration
		b.Run(fmt.Sprintf("%d_a_message/group", rows), func(b *testing.B) { group = benchmark(b, rows, runGroup) })
		b.Run(fmt.Sprintf("%d_a_message/bare_loop", rows), func(b *testing.B) { bare = benchmark(b, rows, runBare) })
		if bare > 0 && group > most*bare {
			b.Errorf("%d rows a message: a row costs %s of CPU, and %s in the bare loop: want at most %d times as much", rows, group, bare, most)
		}
	}
}

// BenchmarkRowsDelivered puts rows of 110 bytes blindly, a hundred owners a message, as a fan-out does.
// ROWS_BENCH_ROWS says how many, 1,000,000 by default.
func BenchmarkRowsDelivered(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv("ROWS_BENCH_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for range b.N {
		b.StopTimer()
		w := newRemoteWire(b)
		w.deliveries(b, rows/100)
		b.StartTimer()
		m := &steady{B: b}
		workOff(m, w, delivered(), 100, rows/100)
		m.report()
	}
}

// deliveries fills t-batch with numbered records.
func (w *wire) deliveries(b *testing.B, messages int) {
	b.Helper()
	for i := range messages {
		w.client.Produce(b.Context(), &kgo.Record{
			Topic: "t-batch", Partition: int32(i % testPartitions), Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
		}, nil)
	}
	if err := w.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// delivered is a group that puts a row for a hundred owners a message.
func delivered() Group {
	owners := make([][]string, testPartitions)
	for i := range 30_000 {
		owner := fmt.Sprintf("user:%d", i)
		p := topics.Partition(owner, testPartitions)
		owners[p] = append(owners[p], owner)
	}
	return Group{Name: "t", Inputs: []Input{{topic: "t-batch", batched: true, handle: func(tx *Tx, value []byte) error {
		id := binary.BigEndian.Uint64(value)
		var row [41]byte    // kind, source, score, pin, version
		var facets [60]byte // author, board, interests
		row[0] = 'c'
		copy(row[1:], "following")
		copy(facets[:], "user:1234567 board:987654 interest:12 interest:345 2026")
		binary.BigEndian.PutUint64(row[10:], id*2654435761)
		binary.BigEndian.PutUint64(row[18:], id)
		mine := owners[tx.Partition()]
		for i := range uint64(100) {
			if err := tx.Of(mine[(id*7919+i*31)%uint64(len(mine))]).Put(row[:], facets[:]); err != nil {
				return err
			}
		}
		return nil
	}}}}
}

// BenchmarkRowsHop measures how long a record takes through a group, from being produced to being read committed, at
// 500 records a second: with fewer partitions more of them arrive within the gap that a partition keeps between commits.
func BenchmarkRowsHop(b *testing.B) {
	for _, partitions := range []int32{4, 8} {
		b.Run(fmt.Sprintf("%d_partitions", partitions), func(b *testing.B) { benchmarkHop(b, partitions) })
	}
}

func benchmarkHop(b *testing.B, partitions int32) {
	w := newRemoteWire(b)
	in, out := w.hopTopics(b, partitions)
	g := Group{Name: "hop", Outputs: []string{out}, Inputs: []Input{{topic: in, handle: func(tx *Tx, value []byte) error {
		_, err := add(tx.Own(), 1)
		return errors.Join(err, tx.Emit(out, tx.Key(), value))
	}}}}
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r, err := New(cfg, w.env(b), g)
	must(b, err)
	stop := start(b, r)
	eventually.True(b, "the group is ready", func() bool { return r.Status().Ready })
	consumer, err := w.kafka.Client(kgo.ConsumeTopics(out))
	must(b, err)
	defer consumer.Close()
	warm := 300 // connections are made meanwhile
	if os.Getenv(realKafka) != "" {
		warm = 7500 // and the broker's code is compiled
	}
	n := warm + 1500
	began := time.Now()
	go func() {
		for i := range n {
			time.Sleep(time.Until(began.Add(time.Duration(i) * 2 * time.Millisecond)))
			owner := benchOwner(i)
			w.client.Produce(b.Context(), &kgo.Record{
				Topic: in, Partition: topics.Partition(owner, partitions), Key: []byte(owner),
				Value: binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())),
			}, nil)
		}
	}()
	before := cpu(b)
	var took []time.Duration
	for len(took) < n {
		consumer.PollFetches(b.Context()).EachRecord(func(rec *kgo.Record) {
			took = append(took, time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(rec.Value)))))
		})
	}
	took = took[warm:]
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
	b.ReportMetric(100*(cpu(b)-before).Seconds()/time.Since(began).Seconds(), "cpu-%")
	b.ReportMetric(0, "ns/op")
	must(b, stop())
}

// hopTopics makes the topics of the group "hop" anew, and has the wire's group run on so many partitions.
func (w *wire) hopTopics(b *testing.B, partitions int32) (in, out string) {
	b.Helper()
	names := []string{"hop-in", "hop-out", "hop-table"}
	w.remove(b, "hop", names...)
	_, err := w.admin.CreateTopics(b.Context(), partitions, -1, nil, names...)
	must(b, err)
	w.remove(b, "hop", topics.DeadLetters)
	_, err = w.admin.CreateTopics(b.Context(), partitions, -1, nil, topics.DeadLetters)
	must(b, err)
	eventually.True(b, "every partition has a leader", func() bool { return w.led(names...) })
	w.kafka.Partitions = partitions
	return names[0], names[1]
}

// BenchmarkRowsRecovered measures how long a new owner with an empty directory takes to be ready, by a million rows.
func BenchmarkRowsRecovered(b *testing.B) {
	const rows = 1_000_000
	w := newRemoteWire(b)
	w.deliveries(b, rows/100)
	workOff(&steady{B: b}, w, delivered(), 100, rows/100)
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r, err := New(cfg, w.env(b), delivered())
	must(b, err)
	began, before := time.Now(), cpu(b)
	stop := start(b, r)
	eventually.True(b, "the new owner is ready", func() bool { return r.Status().Ready })
	b.ReportMetric(time.Since(began).Seconds(), "s")
	b.ReportMetric((cpu(b)-before).Seconds()*1e6/rows, "cpu-µs/row")
	b.ReportMetric(0, "ns/op")
	must(b, stop())
}

// benchRows is the number of rows of one run, by rows a message.
func benchRows(rowsAMessage int) int {
	return map[int]int{1: 200_000, 10: 600_000, 100: 1_200_000}[rowsAMessage]
}

// benchmark returns the CPU time of a row.
func benchmark(b *testing.B, rows int, run func(*steady, *wire, int, int)) (row time.Duration) {
	for range b.N {
		b.StopTimer()
		w := newRemoteWire(b)
		messages := benchRows(rows) / rows
		w.backlog(b, messages)
		runtime.GC()
		b.StartTimer()
		m := &steady{B: b}
		run(m, w, rows, messages)
		m.report()
		row = m.used / time.Duration(m.rows)
	}
	return row
}

// steady is of the steady state: it begins when the first messages are worked off, so that connecting and the opening
// of stores do not count.
type steady struct {
	*testing.B
	rows       int // moved between begin and end
	began      time.Time
	before     time.Duration
	took, used time.Duration
	allocs     uint64
}

func (m *steady) begin() { m.began, m.before, m.allocs = time.Now(), cpu(m.B), mallocs() }

func (m *steady) end(rows int) {
	m.took, m.used, m.allocs, m.rows = time.Since(m.began), cpu(m.B)-m.before, mallocs()-m.allocs, rows
}

func (m *steady) report() {
	m.ReportMetric(m.used.Seconds()*1e6/float64(m.rows), "cpu-µs/row")
	m.ReportMetric(float64(m.rows)/m.took.Seconds(), "rows/s")
	m.ReportMetric(float64(m.allocs)/float64(m.rows), "allocs/row")
	m.ReportMetric(peakMB(), "peak-MB")
	m.ReportMetric(0, "ns/op")
}

// mallocs is how often this process has allocated.
func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

// peakMB is the greatest resident size of the process so far.
func peakMB() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}

func cpu(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// backlog fills t-in with numbered records of ten thousand owners.
func (w *wire) backlog(b *testing.B, messages int) {
	b.Helper()
	for i := range messages {
		owner := benchOwner(i)
		w.client.Produce(b.Context(), &kgo.Record{
			Topic: "t-in", Partition: topics.Partition(owner, testPartitions), Key: []byte(owner), Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
		}, nil)
	}
	if err := w.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func benchOwner(i int) string { return fmt.Sprintf("user:%011d", i*7919%10_000) }

// benchCall is what both do with a message: it counts in row "c", and puts rows of 40 bytes with their owner.
func benchCall(id uint64, rows int, put func(row, value []byte) error) error {
	var row [9]byte
	var value [14]byte
	row[0] = 'e'
	for i := range rows {
		binary.BigEndian.PutUint64(row[1:], id*1000+uint64(i))
		if err := put(row[:], value[:]); err != nil {
			return err
		}
	}
	return nil
}

func runGroup(b *steady, w *wire, rows, messages int) {
	g := Group{Name: "t", Outputs: []string{"t-out"}, Inputs: []Input{{topic: "t-in", handle: func(tx *Tx, value []byte) error {
		if err := benchCall(binary.BigEndian.Uint64(value), rows-1, tx.Own().Put); err != nil {
			return err
		}
		if _, err := add(tx.Own(), 1); err != nil {
			return err
		}
		return tx.Emit("t-out", tx.Key(), value)
	}}}}
	workOff(b, w, g, rows, messages)
}

// workOff runs a group until it has applied all messages.
func workOff(b *steady, w *wire, g Group, rows, messages int) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r, err := New(cfg, w.env(b.B), g)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	until := func(n int) int {
		for {
			if have := int(r.Status().Counters.Records); have >= n {
				return have
			}
			select {
			case err := <-done:
				b.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	first := until(1)
	b.begin()
	b.end((until(messages) - first) * rows)
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// runBare is the limit: consume, produce in a transaction for every five thousand records, write Pebble. It knows no
// owners, reads nothing, recovers nothing.
func runBare(b *steady, w *wire, rows, messages int) {
	consumer, err := w.kafka.Client(kgo.ConsumeTopics("t-in"))
	if err != nil {
		b.Fatal(err)
	}
	defer consumer.Close()
	producer, err := w.kafka.Transactional("bare", kgo.ManualFlushing(), kgo.MaxBufferedBytes(0))
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	shared, err := NewShared(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	defer shared.Close()
	db, err := pebble.Open(b.TempDir(), (&store{log: silent()}).options(shared))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	first := 0
	for done := 0; done < messages; {
		records := consumer.PollRecords(b.Context(), max(5000/rows, 1)).Records()
		if err := bareCommit(b.Context(), producer, db, records, rows); err != nil {
			b.Fatal(err)
		}
		done += len(records)
		if first == 0 {
			first = done
			b.begin()
		}
	}
	b.end((messages - first) * rows)
}

func bareCommit(ctx context.Context, producer *kgo.Client, db *pebble.DB, records []*kgo.Record, rows int) error {
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	batch := db.NewBatch()
	defer batch.Close()
	for _, in := range records {
		err := benchCall(binary.BigEndian.Uint64(in.Value), rows, func(row, value []byte) error {
			key := append(append(append([]byte(nil), in.Key...), 0), row...)
			value = append([]byte(nil), value...)
			producer.Produce(ctx, &kgo.Record{Topic: "t-table", Partition: in.Partition, Key: key, Value: value}, nil)
			return batch.Set(key, value, nil)
		})
		if err != nil {
			return err
		}
		producer.Produce(ctx, &kgo.Record{Topic: "t-out", Partition: in.Partition, Key: in.Key, Value: in.Value}, nil)
	}
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	if err := topics.EndTransaction(ctx, producer, kgo.TryCommit, "t-table", "t-out"); err != nil {
		return err
	}
	return batch.Commit(pebble.NoSync)
}
