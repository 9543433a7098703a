package rows

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestRun_CountersAndOutputsAreExact(t *testing.T) {
	w := parallelWire(t)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in", "t-in2"))
	const users, each = 50, 20
	w.send(t, "t-in", 0, users*each/2, func(i int) string { return user(i % users) })
	w.send(t, "t-in2", users*each/2, users*each/2, func(i int) string { return user(i % users) })
	for u := range users {
		eventually.True(t, user(u)+" is counted", func() bool { return count(t, r, user(u)) == each })
	}
	must.OK(t, stop())
	w.emittedOnce(t, users*each)
	got := r.Status().Counters
	expect.Equal(t, [3]int64{got.Records, got.Emitted, got.DeadLetters}, [3]int64{users * each, users * each}, "counters")
}

// emittedOnce fails the test unless t-out contains the records 0 to n-1 once each, in their owners' partitions.
func (w *wire) emittedOnce(t testing.TB, n int) {
	t.Helper()
	seen := make([]int, n)
	for _, rec := range w.Records("t-out") {
		value, err := w.stream("t-out").Decode(rec.Value)
		if err != nil || int(value.Time) >= n {
			t.Fatalf("emitted %+v, %v", value, err)
		}
		must.Equal(t, rec.Partition, topics.Partition(string(value.User), testPartitions), "partition of record %d of %s", value.Time, value.User)
		seen[value.Time]++
	}
	for i, times := range seen {
		expect.Equal(t, times, 1, "times that record %d was emitted", i)
	}
}

func TestDeadLetters_BadRecordIsUndone(t *testing.T) {
	w := parallelWire(t)
	g := Group{Name: "t", Outputs: []string{"t-out"}, Inputs: []Input{
		Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
			increment(tx.Own())
			Send(tx, w.stream("t-out"), tx.Key(), rec)
			tx.Count("seen")
			if rec.Time == 1 {
				return fmt.Errorf("check record: %w", schemas.Bad("number is one"))
			}
			return nil
		}),
	}}
	r, _ := w.run(t, t.TempDir(), g)
	bad := []*kgo.Record{
		{Topic: "t-in", Key: []byte("user:1"), Value: []byte("not Avro")},
		{Topic: "t-in", Key: []byte("user:1"), Value: nil},
		{Topic: "t-in", Value: w.record(t, "t-in", "user:1", 5).Value},
		{Topic: "t-in", Key: []byte("user:1\x00x"), Value: w.record(t, "t-in", "user:1", 5).Value},
		w.record(t, "t-in", "user:1", 1),
	}
	var all []*kgo.Record
	at := topics.Partition("user:1", testPartitions)
	for i, rec := range bad {
		rec.Partition = at
		all = append(all, rec, w.record(t, "t-in", "user:1", 10+i))
	}
	must.OK(t, w.client.ProduceSync(t.Context(), all...).FirstErr())
	eventually.True(t, "the valid records are counted", func() bool { return count(t, r, "user:1") == len(bad) })
	deadLetters := w.Records(topics.DeadLetters)
	must.Equal(t, len(deadLetters), len(bad), "dead letters")
	for i, deadLetter := range deadLetters {
		got := must.Get(w.Streams.DeadLetters.Decode(deadLetter.Value))(t)
		want := all[2*i]
		if got.Topic != "t-in" || got.Partition != at || got.Offset != want.Offset || got.Group != "t" || got.Reason == "" ||
			!bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) || got.Time != schemas.MicrosOf(want.Timestamp.Truncate(time.Millisecond)) {
			t.Errorf("dead letter %+v of record %d", got, want.Offset)
		}
		expect.Equal(t, string(deadLetter.Key), "t-in", "key of the dead letter %q", deadLetter.Key)
		if i == len(bad)-1 && got.Reason != "number is one" {
			t.Errorf("reason %q, want the callback's", got.Reason)
		}
	}
	expect.Equal(t, len(w.Records("t-out")), len(bad), "records emitted: those of a bad record are undone")
	got := r.Status().Counters
	expect.Equal(t, [2]int64{got.DeadLetters, got.Records}, [2]int64{int64(len(bad)), int64(len(all))}, "dead letters and records")
}

// Records that are longer than any group accepts, from an external producer, go to the dead-letter topic, truncated. The
// records after them are processed.
func TestDeadLetters_OversizedRecords(t *testing.T) {
	w := parallelWire(t)
	r, _ := w.run(t, t.TempDir(), w.counter("t-in"))
	right := topics.Partition("user:1", testPartitions)
	long := bytes.Repeat([]byte{'x'}, 3<<20)
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.Kafka.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(int32(len(long)+1000)))
	must.OK(t, err)
	defer producer.Close()
	for _, partition := range []int32{right, (right + 1) % testPartitions} {
		rec := &kgo.Record{Topic: "t-in", Partition: partition, Key: []byte("user:1"), Value: long}
		must.OK(t, producer.ProduceSync(t.Context(), rec).FirstErr())
	}
	w.send(t, "t-in", 0, 4, user)
	w.send(t, "t-in", 4, 1, func(int) string { return "user:1" })
	eventually.True(t, "the records after it are processed", func() bool { return r.Status().Counters.Records == 7 })
	deadLetters := w.Records(topics.DeadLetters)
	must.Equal(t, len(deadLetters), 2, "dead letters")
	for _, deadLetter := range deadLetters {
		got, err := w.Streams.DeadLetters.Decode(deadLetter.Value)
		if err != nil || !strings.Contains(got.Reason, "are kept") || !bytes.HasPrefix(long, got.Value) || len(got.Value) < 1<<20 {
			t.Errorf("dead letter of %d bytes, %v: %q", len(deadLetter.Value), err, got.Reason)
		}
	}
}

func TestEmit_CarriesOriginTime(t *testing.T) {
	w := parallelWire(t)
	start(t, newRunner(t, w, t.TempDir(), w.counter("t-in")))
	external, derived := w.record(t, "t-in", "user:1", 0), w.record(t, "t-in", "user:1", 1)
	external.Timestamp = time.UnixMilli(5000)
	derived.Headers = topics.WithOrigin(nil, 7)
	must.OK(t, w.client.ProduceSync(t.Context(), external, derived).FirstErr())
	var out []*kgo.Record
	eventually.True(t, "both are emitted", func() bool { out = w.Records("t-out"); return len(out) == 2 })
	for i, want := range []schemas.Micros{5_000_000, 7} {
		expect.NoDiff(t, topics.OriginTime(out[i]), want, "record %d has the origin time", i)
	}
}

// A batched record names its owners. An owner in another partition makes it a bad record and does not stop the group.
func TestBatched_RejectsOwnerOfAnotherPartition(t *testing.T) {
	w := parallelWire(t)
	here, elsewhere := ownerIn(0), ownerIn(1)
	g := Group{Name: "t", Inputs: []Input{Batched(w.stream("t-batch"), func(tx *Tx, rec *schemas.DeletedUser) error {
		for _, o := range []string{here, string(rec.User)} {
			increment(tx.Of(o))
		}
		return nil
	})}}
	r, stop := w.run(t, t.TempDir(), g)
	for i, owner := range []string{elsewhere, here} {
		rec := w.record(t, "t-batch", owner, i)
		rec.Partition = 0
		must.OK(t, w.client.ProduceSync(t.Context(), rec).FirstErr())
	}
	eventually.True(t, "the valid record is counted", func() bool { return count(t, r, here) == 2 })
	eventually.True(t, "both are committed", func() bool { return r.Status().Counters.Records == 2 }) // which is counted after the rows are visible
	expect.Equal(t, r.Status().Counters.DeadLetters, 1, "dead letters")
	must.OK(t, stop()) // no error
}

func TestCommit_RecordLargerThanABatch(t *testing.T) {
	w := parallelWire(t)
	const rows, size = 600, 4 << 10
	g := Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(tx *Tx, _ *schemas.DeletedUser) error {
		value := bytes.Repeat([]byte{7}, size)
		for i := range rows {
			tx.Own().Put(binary.BigEndian.AppendUint64(nil, uint64(i)), value)
		}
		increment(tx.Own())
		return nil
	})}}
	cfg := w.config(t.TempDir())
	cfg.MaxBatchBytes = 64 << 10
	r := must.Get(New(cfg, w.env(t), g))(t)
	start(t, r)
	w.send(t, "t-in", 0, 6, func(int) string { return "user:1" })
	eventually.True(t, "all are counted", func() bool { return r.Status().Counters.Records == 6 })
	expect.Equal(t, r.Status().Counters.Rows, 6*(rows+2), "rows: one commit per record")
}

func TestStatus_CountsByReason(t *testing.T) {
	w := parallelWire(t)
	reg := prometheus.NewRegistry()
	g := Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
		tx.Count("bot")
		tx.Effect("spared", 10)
		if rec.Time == 2 {
			return schemas.Bad(fmt.Sprintf("undone %d of %q", rec.Time, tx.Key()))
		}
		return nil
	})}}
	env := w.env(t)
	env.Metrics = reg
	r := must.Get(New(w.config(t.TempDir()), env, g))(t)
	other := g
	other.Name = "other"
	must.Get(New(w.config(t.TempDir()), env, other))(t) // the second group of the process
	start(t, r)
	w.send(t, "t-in", 0, 5, func(int) string { return "user:1" })
	eventually.True(t, "all are applied", func() bool { return r.Status().Counters.Records == 5 })
	status := r.Status()
	expect.NoDiff(t, status.Dropped, map[string]int64{"bot": 4}, "dropped")
	expect.NoDiff(t, status.DeadLetters, map[string]int64{"undone … of …": 1}, "dead letters")
	expect.NoDiff(t, status.Effects, map[string]int64{"spared": 40}, "effects")
	for name, want := range map[string]map[string]float64{
		"records_dropped_total": {"t bot": 4}, "dead_letters_total": {"t": 1, "other": 0}, "effects_total": {"spared t": 40},
		"records_processed_total": {"t": 5, "other": 0},
	} {
		expect.NoDiff(t, metricstest.Values(t, reg, metricPrefix+name), want, "metric %s", name)
	}
}

func TestNew_ReportsEveryProblem(t *testing.T) {
	w := parallelWire(t)
	cfg := DefaultConfig()
	cfg.Dir, cfg.MaxBatchBytes = "", 1
	_, err := New(cfg, w.env(t), Group{Inputs: []Input{{topic: "a"}, {topic: "a"}, {topic: "l", loop: true}}, Outputs: []string{""}})
	for _, want := range []string{"dir: is empty", "max_batch_bytes: 1: want 64KiB to 8MiB", "name: empty", `input "a"`, `loop "l"`, `output ""`} {
		expect.Error(t, err, want, "New")
	}
}

func TestRun_RejectsSecondRun(t *testing.T) {
	w := parallelWire(t)
	r, _ := w.run(t, t.TempDir(), w.counter("t-in"))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	expect.Is(t, r.Run(t.Context()), errRunning, "Run")
}

func TestRun_NamesMissingTopic(t *testing.T) {
	w := parallelWire(t)
	_ = runFails(t, newRunner(t, w, t.TempDir(), w.counter("nowhere")), "nowhere")
}

// The group would read owners' rows in partitions that do not contain them.
func TestRun_RejectsOtherPartitionCount(t *testing.T) {
	w := parallelWire(t)
	w.Kafka.Partitions = testPartitions / 2
	runFailsForGood(t, newRunner(t, w, t.TempDir(), w.counter("t-in")), "partitions, the configuration says")
}
