package rows

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/zeros"
	"github.com/smartfeed/smartfeed/topics"
)

// A batch that decompresses to more than the limit is a dead letter. The test is not parallel, because it measures memory.
func TestOversizedBatch_IsOneDeadLetter(t *testing.T) {
	testOversizedBatch(t, zeros.Produce, 256<<20, 768<<20, "decompresses to more than")
}

// Headers take thirty times their decompressed size in memory, and a million times their size on the wire. A batch with a
// record of more than MaxHeaders is a dead letter, too. The test is not parallel, because it measures memory.
func TestOversizedBatch_ManyHeadersAreOneDeadLetter(t *testing.T) {
	testOversizedBatch(t, zeros.ProduceHeaders, 12<<20, 384<<20, "headers, more than") // 24 MiB decompressed, 670 MiB decoded
}

type produceZeros func(ctx context.Context, client *kgo.Client, topic string, partition int32, n int) (int64, error)

// testOversizedBatch checks that the batches before and after an oversized one in the same fetch are processed, with at most
// the given memory, and that the oversized one is a dead letter.
func testOversizedBatch(t *testing.T, produce produceZeros, n int, most int64, why string) {
	w := newWire(t)
	one := func(int) string { return "user:1" }
	partition := topics.Partition("user:1", testPartitions)
	w.send(t, "t-in", 0, 3, one)
	at := must.Get(produce(t.Context(), w.client, "t-in", partition, n))(t)
	w.send(t, "t-in", 3, 2, one)
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // measure live memory, not garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	whileRunning(t, r, "all other records are counted", func() bool { return count(t, r, "user:1") == 5 })
	w.hasDeadLetterOf(t, partition, at, why)
	expect.Equal(t, r.Status().Counters.DeadLetters, 1, "dead letters")
	must.OK(t, stop())
	w.readsUpTo(t, partition, at)
	runtime.ReadMemStats(&after)
	got := int64(after.HeapSys) - int64(before.HeapSys)
	t.Logf("took %d MiB of memory", got>>20)
	expect.AtMost(t, got, most, "bytes of memory")

	r, _ = w.run(t, t.TempDir(), w.counter("t-in"))
	w.send(t, "t-in", 5, 1, one)
	eventually.True(t, "processing continues after a restart", func() bool { return count(t, r, "user:1") == 6 })
	w.hasDeadLetterOf(t, partition, at, why)
}

// Each of several oversized batches is a dead letter, whether adjacent or in different partitions, before and during a run.
func TestOversizedBatch_EachIsOneDeadLetter(t *testing.T) {
	w := parallelWire(t)
	users := []string{ownerIn(0), ownerIn(1)}
	put := func(owner string) {
		t.Helper()
		must.Get(zeros.Produce(t.Context(), w.client, "t-in", topics.Partition(owner, testPartitions), topics.MaxDecompressedBytes+1))(t)
	}
	each := func(i int) string { return users[i%2] }
	put(users[0])
	put(users[0])
	w.send(t, "t-in", 0, 10, each)
	put(users[1])
	w.send(t, "t-in", 10, 2, each)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	counted := func(n int) func() bool {
		return func() bool { return count(t, r, users[0]) == n && count(t, r, users[1]) == n }
	}
	eventually.True(t, "all other records are counted", counted(6))
	put(users[0])
	w.send(t, "t-in", 12, 2, each)
	eventually.True(t, "the record after another oversized batch is counted", counted(7))
	expect.Equal(t, r.Status().Counters.DeadLetters, 4, "dead letters")
	must.OK(t, stop()) // no error
	w.emittedOnce(t, 14)
}

// hasDeadLetterOf checks that there is one dead letter, about the oversized batch at an offset.
func (w *wire) hasDeadLetterOf(t *testing.T, partition int32, at int64, why string) {
	t.Helper()
	deadLetters := w.Records(topics.DeadLetters)
	must.Equal(t, len(deadLetters), 1, "dead letters")
	got := must.Get(w.Streams.DeadLetters.Decode(deadLetters[0].Value))(t)
	if got.Topic != "t-in" || got.Partition != partition || got.Offset != at ||
		!strings.Contains(got.Reason, why) {
		t.Errorf("dead letter of %s/%d at %d: %.80q", got.Topic, got.Partition, got.Offset, got.Reason)
	}
}

// readsUpTo checks that a Log reads up to the oversized batch and returns an error that names it.
func (w *wire) readsUpTo(t *testing.T, partition int32, at int64) {
	t.Helper()
	l, err := topics.NewLog(w.Kafka)
	must.OK(t, err)
	defer l.Close()
	next := int64(0)
	for err == nil && next < at {
		_, next, err = l.Read(t.Context(), "t-in", partition, next)
	}
	must.OK(t, err)
	_, _, err = l.Read(t.Context(), "t-in", partition, at)
	large := must.As[*kgo.ErrDecompressTooLarge](t, err)
	expect.Equal(t, [2]int64{large.Offset, large.NextOffset}, [2]int64{at, at + 1}, "offsets of the batch that is too large, and of the next")
}
