package rows

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// retain sets the start offset of every partition of t-in, as retention does.
func (w *wire) retain(t *testing.T, at func(partition int32) int64) {
	t.Helper()
	for p := range int32(testPartitions) {
		w.DeleteBefore("t-in", p, at(p))
	}
}

// ends returns the end offset of each partition of t-in.
func (w *wire) ends(t *testing.T) func(partition int32) int64 {
	t.Helper()
	ends := must.Get(w.admin.ListEndOffsets(t.Context(), "t-in"))(t)
	return func(p int32) int64 {
		end, _ := ends.Lookup("t-in", p)
		return end.Offset
	}
}

// sendInTransaction sends a record to each partition of t-in in a transaction, which a marker follows.
func (w *wire) sendInTransaction(t *testing.T, end kgo.TransactionEndTry) {
	t.Helper()
	client := must.Get(w.Kafka.Transactional("upstream"))(t)
	defer client.Close()
	must.OK(t, client.BeginTransaction())
	for p := range int32(testPartitions) {
		rec := w.record(t, "t-in", ownerIn(p), 0)
		must.OK(t, client.ProduceSync(t.Context(), rec).FirstErr())
	}
	must.OK(t, topics.EndTransaction(t.Context(), client, end, "t-in"))
}

// ownerIn returns an owner in a partition.
func ownerIn(partition int32) string {
	return topicstest.KeysIn("user:", partition, testPartitions, 1)[0]
}

func TestRetention_LostRecordsStopTheGroup(t *testing.T) {
	w := parallelWire(t)
	recordsDeletedUnread(t, w, func() { w.retain(t, w.ends(t)) })
}

func recordsDeletedUnread(t *testing.T, w *wire, deleteRecords func()) {
	dir := t.TempDir()
	w.countFirst(t, dir, 40)
	w.send(t, "t-in", 40, 40, user)
	deleteRecords()
	runFailsForGood(t, newRunner(t, w, dir, w.counter("t-in")), "t-in/", "restore the topic, or rebuild the group")
}

// After the last applied record, there are only markers and aborted records. Retention may delete them.
func TestRetention_LostMarkersDoNotStopTheGroup(t *testing.T) {
	t.Parallel()
	markersDeletedUnread(t, newWire(t))
}

func markersDeletedUnread(t *testing.T, w *wire) {
	dir := t.TempDir()
	r := newRunner(t, w, dir, w.counter("t-in"))
	r.idleAfter = 20 * time.Millisecond
	stop := start(t, r)
	w.sendInTransaction(t, kgo.TryCommit)
	w.sendInTransaction(t, kgo.TryAbort)
	eventually.True(t, "markers and aborted records are skipped", func() bool { return w.Committed("t", "t-in") == 4*testPartitions })
	expect.Equal(t, r.Status().Counters.Records, testPartitions, "records applied: markers and aborted records do not count")
	must.OK(t, stop())
	w.retain(t, w.ends(t))
	r, _ = w.run(t, dir, w.counter("t-in"))
	w.send(t, "t-in", 1, testPartitions, func(i int) string { return ownerIn(int32(i - 1)) })
	for p := range int32(testPartitions) {
		eventually.True(t, "both records of the owner are counted", func() bool { return count(t, r, ownerIn(p)) == 2 })
	}
}

func TestIdleInput_DueIntervals(t *testing.T) {
	var r idleInput
	var checks []int
	for rest := range 200 {
		applied := int64(7)
		if rest > 70 {
			applied = int64(min(rest, 100)) // records arrive until the hundredth interval
		}
		if r.due(applied) {
			checks = append(checks, rest)
		}
	}
	expect.NoDiff(t, checks, []int{1, 61, 101, 161}, "intervals with a check")
}

// The check of an idle input does not skip a record that is not applied yet.
func TestIdleInput_DoesNotSkipRecords(t *testing.T) {
	t.Parallel()
	recordsAreNotSkipped(t, newWire(t))
}

func recordsAreNotSkipped(t *testing.T, w *wire) {
	w.sendInTransaction(t, kgo.TryCommit)
	w.sendInTransaction(t, kgo.TryAbort)
	w.send(t, "t-in", 1, 1, func(int) string { return ownerIn(0) })
	r := newRunner(t, w, t.TempDir(), w.counter("t-out")) // reads another topic
	start(t, r)
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	for _, c := range []struct {
		name          string
		partition     int32
		applied, want int64
		retain, left  bool
	}{
		{name: "never applied", partition: 0, applied: -1, want: -1},
		{name: "marker, then a record", partition: 0, applied: 0, want: 0, left: true},
		{name: "markers only", partition: 1, applied: 0, want: 3},
		{name: "at the end", partition: 1, applied: 3, want: 3},
		{name: "unread records deleted", partition: 2, applied: 0, want: 0, retain: true},
	} {
		if c.retain {
			w.retain(t, func(int32) int64 { return 2 })
		}
		p := r.slots[c.partition].partition
		p.mu.Lock()
		p.applied[0] = c.applied
		p.mu.Unlock()
		left := must.Get(p.skipMarkers(0, "t-in"))(t)
		expect.Equal(t, left, c.left, "%s: unread record found", c.name)
		expect.NoDiff(t, p.appliedOf(0), c.want, "%s: applied up to", c.name)
	}
}
