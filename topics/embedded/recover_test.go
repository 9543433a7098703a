package embedded_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// crashImage returns the directory of a broker that was killed after a transaction with a record in each of four
// partitions. A committed and an aborted transaction precede it.
func crashImage(t *testing.T, commit bool) string {
	t.Helper()
	dir := t.TempDir()
	c := startChild(t, dir)
	createTopic(t, c.Kafka, "t")
	tx := must.Get(c.Kafka.Transactional("tx"))(t)
	defer tx.Close()
	for i, end := range []bool{true, false, commit} {
		inAllPartitions(t, tx, fmt.Sprintf("tx%d", i), end)
	}
	c.Kill()
	return dir
}

func inAllPartitions(t *testing.T, tx *kgo.Client, name string, commit bool) {
	t.Helper()
	produceInAll(t, tx, name)
	must.OK(t, topics.EndTransaction(context.Background(), tx, kgo.TransactionEndTry(commit), "t"))
}

// produceInAll starts a transaction with a record in each of four partitions.
func produceInAll(t *testing.T, tx *kgo.Client, name string) {
	t.Helper()
	must.OK(t, tx.BeginTransaction())
	for p := range int32(4) {
		r := &kgo.Record{Topic: "t", Partition: p, Value: fmt.Appendf(nil, "%s-%d", name, p)}
		must.OK(t, tx.ProduceSync(t.Context(), r).FirstErr())
	}
}

func segmentOf(dir string, partition int) string {
	return filepath.Join(dir, "broker", "partitions", fmt.Sprintf("t-%d", partition), "0.dat")
}

// batches returns the offset in bytes of each batch of a segment.
func batches(data []byte) []int64 {
	var at []int64
	for next := int64(0); next < int64(len(data)); {
		at = append(at, next)
		next += 12 + int64(binary.BigEndian.Uint32(data[next+8:]))
	}
	return at
}

// cutLastBatch removes the last batch of a partition, as if the broker had been killed before writing it.
func cutLastBatch(t *testing.T, dir string, partition int) {
	t.Helper()
	path := segmentOf(dir, partition)
	data := must.Get(os.ReadFile(path))(t)
	at := batches(data)
	must.OK(t, os.Truncate(path, at[len(at)-1]))
}

// values returns the values of a transaction with one record in each of the four partitions.
func values(name string) []string {
	return []string{name + "-0", name + "-1", name + "-2", name + "-3"}
}

// A transaction whose end was interrupted ends in all partitions as in the first one, over two crashes.
func TestRecovery_CompletesInterruptedEndOfTransaction(t *testing.T) {
	tests := []struct {
		name    string
		commit  bool
		without []int // partitions without the marker
		want    []string
	}{
		{"all have the commit", true, nil, values("tx2")},
		{"one has the commit", true, []int{0, 1, 2}, values("tx2")},
		{"none has the commit", true, []int{0, 1, 2, 3}, nil},
		{"one has the abort", false, []int{1, 2, 3}, nil},
		{"none has the abort", false, []int{0, 1, 2, 3}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := crashImage(t, tt.commit)
			for _, p := range tt.without {
				cutLastBatch(t, dir, p)
			}
			want := append(values("tx0"), tt.want...)
			for range 2 {
				c := startChild(t, dir)
				checkValues(t, c.Kafka, want)
				tx, err := c.Kafka.Transactional("tx") // the same producer continues
				must.OK(t, err)
				name := fmt.Sprintf("later%d", len(want))
				inAllPartitions(t, tx, name, true)
				tx.Close()
				want = append(want, values(name)...)
				c.Kill()
			}
			checkValues(t, start(t, config(dir)).Kafka(0), want)
		})
	}
}

func checkValues(t *testing.T, k topics.Kafka, want []string) {
	t.Helper()
	got := readAll(t, k, "t")
	for _, v := range want {
		expect.Equal(t, got[v], 1, "times that %s is in the log", v)
	}
	expect.Equal(t, len(got), len(want), "number of records %v", got)
}

// An open transaction of a producer from before KIP-890 is not committed because an earlier one with the same epoch was.
func TestRecovery_AbortsOpenTransactionOfOldClient(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	createTopic(t, c.Kafka, "t")
	tx := must.Get(c.Kafka.Transactional("tx", oldClient...))(t)
	defer tx.Close()
	inAllPartitions(t, tx, "tx0", true)
	inAllPartitions(t, tx, "tx1", true)
	c.Kill()
	for p := range 4 {
		cutLastBatch(t, dir, p)
	}
	checkValues(t, start(t, config(dir)).Kafka(0), values("tx0"))
}

// closedWithOpen returns the directory of a broker that was closed with an open transaction after a committed one. It also
// returns the producer, which expects the broker at the same address.
func closedWithOpen(t *testing.T) (embedded.Config, *kgo.Client) {
	t.Helper()
	cfg := config(t.TempDir())
	s := start(t, cfg)
	createTopic(t, s.Kafka(0), "t")
	cfg.Kafka = s.Kafka(0).Brokers[0]
	tx := must.Get(s.Kafka(0).Transactional("tx"))(t)
	t.Cleanup(tx.Close)
	inAllPartitions(t, tx, "tx0", true)
	produceInAll(t, tx, "open")
	must.OK(t, s.Close())
	return cfg, tx
}

// After a clean close, a transaction continues.
func TestServer_KeepsOpenTransactionOverRestart(t *testing.T) {
	cfg, tx := closedWithOpen(t)
	s := start(t, cfg)
	must.OK(t, tx.EndTransaction(t.Context(), kgo.TryCommit))
	checkValues(t, s.Kafka(0), append(values("tx0"), values("open")...))
}

// A transaction that was open over a clean close is aborted by a later crash, even in partitions without new records.
func TestRecovery_AbortsTransactionThatWasOpenOverCleanClose(t *testing.T) {
	cfg, _ := closedWithOpen(t)
	startChild(t, cfg.Dir).Kill()
	s := start(t, config(cfg.Dir))
	tx := must.Get(s.Kafka(0).Transactional("other"))(t)
	defer tx.Close()
	inAllPartitions(t, tx, "later", true)
	checkValues(t, s.Kafka(0), append(values("tx0"), values("later")...))
}

// A producer that was about to commit when the broker was killed learns that the commit is done, or is fenced. It does not
// continue in a transaction that recovery has ended.
func TestRecovery_FencesProducerOfAbortedTransaction(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	createTopic(t, c.Kafka, "t")
	addr := c.Kafka.Brokers[0]
	tx := must.Get(c.Kafka.Transactional("tx"))(t)
	defer tx.Close()
	inAllPartitions(t, tx, "tx0", true)
	must.OK(t, tx.BeginTransaction())
	must.OK(t, tx.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("lost")}).FirstErr())
	c.Kill()
	cfg := config(dir)
	cfg.Kafka = addr
	s := start(t, cfg)
	expect.Fails(t, tx.EndTransaction(t.Context(), kgo.TryCommit), "commit of a transaction that the crash aborted")
	checkValues(t, s.Kafka(0), values("tx0"))
}

// Damage that a crash can cause is repaired. Other damage is reported.
func TestRecovery_RepairsDamageOfCrashes(t *testing.T) {
	tests := []struct {
		name   string
		damage func(d []byte, at []int64) []byte // damages partition 0; at has the position of each batch, the last one is a marker
		err    string
	}{
		{"none", func(d []byte, _ []int64) []byte { return d }, ""},
		{"torn head", func(d []byte, at []int64) []byte { return append(d, d[at[5]:at[5]+7]...) }, ""},
		{"torn body", func(d []byte, at []int64) []byte { return append(d, d[at[5]:at[5]+70]...) }, ""},
		{"bit flipped", func(d []byte, at []int64) []byte { d[at[1]+65] ^= 1; return d }, "(wrong checksum)"},
		{"trailing zeros", func(d []byte, _ []int64) []byte { return append(d, make([]byte, 100)...) }, "a batch of 12 bytes"},
		{"batch lost", func(d []byte, at []int64) []byte { return append(d[:at[4]], d[at[5]:]...) }, "batch has offset 5, want 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := crashImage(t, true)
			path := segmentOf(dir, 0)
			data := must.Get(os.ReadFile(path))(t)
			must.OK(t, os.WriteFile(path, tt.damage(slices.Clone(data), batches(data)), 0o600))
			s, err := embedded.Start(t.Context(), config(dir), nil)
			if tt.err != "" {
				expect.Error(t, err, tt.err, "Start")
				expect.Error(t, err, filepath.Dir(path), "Start")
				return
			}
			must.OK(t, err)
			defer s.Close()
			checkValues(t, s.Kafka(0), append(values("tx0"), values("tx2")...))
		})
	}
}

// The index lost its last entry. Without the repair, kfake reads every later batch as the one before it.
func TestRecovery_RebuildsIndex(t *testing.T) {
	dir := crashImage(t, true)
	index := strings.TrimSuffix(segmentOf(dir, 0), ".dat") + ".idx"
	info := must.Get(os.Stat(index))(t)
	must.OK(t, os.Truncate(index, info.Size()-15))
	s := start(t, config(dir))
	must.OK(t, s.Close())
	expect.Equal(t, must.Get(os.Stat(index))(t).Size(), info.Size(), "bytes of the index")
}

func wantFull(t *testing.T, err error, cfg embedded.Config) {
	t.Helper()
	full := must.As[*embedded.FullError](t, err)
	expect.Equal(t, full.Dir, cfg.Dir, "full directory")
	expect.Equal(t, full.Max, cfg.MaxBytes, "limit of the directory")
	expect.AtLeast(t, full.Bytes, cfg.MaxBytes+1, "bytes of the directory")
}

func TestServer_StopsWhenDirectoryIsFull(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.MaxBytes = 2 << 20
	s := start(t, cfg)
	createTopic(t, s.Kafka(0), "t")
	cl := must.Get(s.Kafka(0).Client(kgo.ProducerBatchCompression(kgo.NoCompression())))(t)
	defer cl.Close()
	for range 3 {
		r := &kgo.Record{Topic: "t", Value: make([]byte, 1<<20)}
		must.OK(t, cl.ProduceSync(t.Context(), r).FirstErr())
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit())
	defer cancel()
	wantFull(t, s.Run(ctx), cfg)
	expect.Error(t, s.Close(), "", "Close")
	_, err := embedded.Start(t.Context(), cfg, nil)
	wantFull(t, err, cfg)
	cfg.MaxBytes = 20 << 20 // raised, as the error advises
	expect.Equal(t, len(readAll(t, start(t, cfg).Kafka(0), "t")), 1, "values after the limit was raised")
}
