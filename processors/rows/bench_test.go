package rows

import (
	"context"
	"encoding/binary"
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

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/memory"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// BenchmarkRows processes a backlog and reports the CPU time that this process spends per row. It compares the time with
// that of a bare loop of franz-go and Pebble that moves the same rows, with one transaction per batch. The broker runs in
// its own process.
//
// A row needs no allocation: it is in its batch's arena, and its record is reused by the next transaction. The counted
// allocations are for the input record: one by sarama, six by Goka (message, context, headers), one to pass its bytes as an
// any, and two by the callback. The bare loop needs four per row: key, value, record, and franz-go's own.
//
// The benchmark fails when the CPU time of a row exceeds a multiple of that of the bare loop. Typical ratios are 1.2, 1.4 and
// 1.0 on an idle machine, and up to twice that on a busy one. Elapsed time is reported, but not checked.
//
//	go test -run=- -bench=Rows ./processors/rows
func BenchmarkRows(b *testing.B) {
	const most = 4
	for _, rows := range []int{1, 10, 100} {
		var group, bare time.Duration
		b.Run(fmt.Sprintf("%d_a_message/group", rows), func(b *testing.B) { group = benchmark(b, rows, runGroup) })
		b.Run(fmt.Sprintf("%d_a_message/bare_loop", rows), func(b *testing.B) { bare = benchmark(b, rows, runBare) })
		if bare > 0 && group > most*bare {
			b.Errorf("%d rows per message: CPU time per row %s, in the bare loop %s, want at most %d times that", rows, group, bare, most)
		}
	}
}

// BenchmarkRowsDelivered puts rows of 110 bytes without reading, for a hundred owners per message, like a fan-out.
// ROWS_BENCH_ROWS sets the number of rows, 1,000,000 by default.
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
		applyAll(m, w, delivered(), 100, rows/100)
		m.report()
	}
}

// deliveries produces numbered records to t-batch.
func (w *wire) deliveries(b *testing.B, messages int) {
	b.Helper()
	for i := range messages {
		w.client.Produce(b.Context(), &kgo.Record{
			Topic: "t-batch", Partition: int32(i % testPartitions), Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
		}, nil)
	}
	must.OK(b, w.client.Flush(b.Context()))
}

// delivered returns a group that puts one row for each of a hundred owners per message.
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
			tx.Of(mine[(id*7919+i*31)%uint64(len(mine))]).Put(row[:], facets[:])
		}
		return nil
	}}}}
}

// BenchmarkRowsHop measures how long a record takes through a group, from its production until it can be read committed, at
// 500 records per second. With fewer partitions, more records arrive within the gap between two commits of a partition.
func BenchmarkRowsHop(b *testing.B) {
	for _, partitions := range []int32{4, 8} {
		b.Run(fmt.Sprintf("%d_partitions", partitions), func(b *testing.B) { benchmarkHop(b, partitions) })
	}
}

func benchmarkHop(b *testing.B, partitions int32) {
	w := newRemoteWire(b)
	in, out := w.hopTopics(b, partitions)
	g := Group{Name: "hop", Outputs: []string{out}, Inputs: []Input{{topic: in, handle: func(tx *Tx, value []byte) error {
		tx.Emit(out, tx.Key(), value)
		increment(tx.Own())
		return nil
	}}}}
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r := must.Get(New(cfg, w.env(b), g))(b)
	stop := start(b, r)
	eventually.True(b, "the group is ready", func() bool { return r.Status().Ready })
	consumer := must.Get(w.Kafka.Client(kgo.ConsumeTopics(out)))(b)
	defer consumer.Close()
	warm := 300 // until all connections are established
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
	must.OK(b, stop())
}

// hopTopics creates the topics of the group "hop" from scratch, and sets the number of partitions of the wire's group.
func (w *wire) hopTopics(b *testing.B, partitions int32) (in, out string) {
	b.Helper()
	names := []string{"hop-in", "hop-out", "hop-table"}
	w.remove(b, "hop", names...)
	must.Get(w.admin.CreateTopics(b.Context(), partitions, -1, nil, names...))(b)
	w.remove(b, "hop", topics.DeadLetters)
	must.Get(w.admin.CreateTopics(b.Context(), partitions, -1, nil, topics.DeadLetters))(b)
	eventually.True(b, "every partition has a leader", func() bool { return w.hasLeaders(names...) })
	w.Kafka.Partitions = partitions
	return names[0], names[1]
}

// BenchmarkRowsRecovered measures how long a new owner with an empty directory takes to recover a million rows.
func BenchmarkRowsRecovered(b *testing.B) {
	const rows = 1_000_000
	w := newRemoteWire(b)
	w.deliveries(b, rows/100)
	applyAll(&steady{B: b}, w, delivered(), 100, rows/100)
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r := must.Get(New(cfg, w.env(b), delivered()))(b)
	began, before := time.Now(), cpu(b)
	stop := start(b, r)
	eventually.True(b, "the new owner is ready", func() bool { return r.Status().Ready })
	b.ReportMetric(time.Since(began).Seconds(), "s")
	b.ReportMetric((cpu(b)-before).Seconds()*1e6/rows, "cpu-µs/row")
	b.ReportMetric(0, "ns/op")
	must.OK(b, stop())
}

// benchmark returns the CPU time per row.
func benchmark(b *testing.B, rows int, run func(*steady, *wire, int, int)) (row time.Duration) {
	for range b.N {
		b.StopTimer()
		w := newRemoteWire(b)
		messages := map[int]int{1: 200_000, 10: 60_000, 100: 12_000}[rows]
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

// steady measures the steady state. It starts when the first messages are processed, so that connecting and opening the
// stores do not count.
type steady struct {
	*testing.B
	rows       int // processed between begin and end
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
	held := must.Get(memory.Held())(m.B)
	m.ReportMetric(held.Peak, "peak-MB")
	m.ReportMetric(0, "ns/op")
}

// mallocs returns the number of allocations of this process.
func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

func cpu(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// backlog produces numbered records of ten thousand owners to t-in.
func (w *wire) backlog(b *testing.B, messages int) {
	b.Helper()
	for i := range messages {
		owner := benchOwner(i)
		w.client.Produce(b.Context(), &kgo.Record{
			Topic: "t-in", Partition: topics.Partition(owner, testPartitions), Key: []byte(owner), Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
		}, nil)
	}
	must.OK(b, w.client.Flush(b.Context()))
}

func benchOwner(i int) string { return fmt.Sprintf("user:%011d", i*7919%10_000) }

// benchCall is the callback of both benchmarks. It counts in row "c" and puts rows of 40 bytes, including their owner.
func benchCall(id uint64, rows int, put func(row, value []byte)) {
	var row [9]byte
	var value [14]byte
	row[0] = 'e'
	for i := range rows {
		binary.BigEndian.PutUint64(row[1:], id*1000+uint64(i))
		put(row[:], value[:])
	}
}

func runGroup(b *steady, w *wire, rows, messages int) {
	g := Group{Name: "t", Outputs: []string{"t-out"}, Inputs: []Input{{topic: "t-in", handle: func(tx *Tx, value []byte) error {
		benchCall(binary.BigEndian.Uint64(value), rows-1, tx.Own().Put)
		increment(tx.Own())
		tx.Emit("t-out", tx.Key(), value)
		return nil
	}}}}
	applyAll(b, w, g, rows, messages)
}

// applyAll runs a group until it has applied all messages.
func applyAll(b *steady, w *wire, g Group, rows, messages int) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.Dir = b.TempDir()
	r := must.Get(New(cfg, w.env(b.B), g))(b)
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
	must.OK(b, <-done)
}

// runBare is the lower limit: it consumes, produces in one transaction per five thousand records, and writes to Pebble. It
// knows no owners, reads no rows and recovers nothing.
func runBare(b *steady, w *wire, rows, messages int) {
	consumer := must.Get(w.Kafka.Client(kgo.ConsumeTopics("t-in")))(b)
	defer consumer.Close()
	producer := must.Get(w.Kafka.Transactional("bare", kgo.ManualFlushing(), kgo.MaxBufferedBytes(0)))(b)
	defer producer.Close()
	shared := must.Get(NewShared(DefaultConfig()))(b)
	defer shared.Close()
	db := must.Get(pebble.Open(b.TempDir(), (&store{log: silent()}).options(shared)))(b)
	defer db.Close()
	first := 0
	for done := 0; done < messages; {
		records := consumer.PollRecords(b.Context(), max(5000/rows, 1)).Records()
		must.OK(b, bareCommit(b.Context(), producer, db, records, rows))
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
		benchCall(binary.BigEndian.Uint64(in.Value), rows, func(row, value []byte) {
			key := append(append(append([]byte(nil), in.Key...), 0), row...)
			value = append([]byte(nil), value...)
			producer.Produce(ctx, &kgo.Record{Topic: "t-table", Partition: in.Partition, Key: key, Value: value}, nil)
			_ = batch.Set(key, value, nil) // it always returns nil
		})
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
