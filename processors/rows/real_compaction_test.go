package rows

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Only Kafka compacts tables. The embedded broker keeps all records.

// compacts makes Kafka compact the table as soon and as far as possible, and keep tombstones for the given time.
func (w *wire) compacts(t *testing.T, deletions time.Duration) {
	t.Helper()
	w.configure(t, "t-table", map[string]string{
		"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0",
		"delete.retention.ms": strconv.FormatInt(deletions.Milliseconds(), 10), "file.delete.delay.ms": "1000",
	})
}

// waitForCompaction waits until the table contains each row once and no tombstone.
func (w *wire) waitForCompaction(t *testing.T) {
	t.Helper()
	before, after := len(w.Records("t-table")), 0
	eventually.True(t, "the table is compacted", func() bool {
		w.fenceAll(t) // the last record is never compacted
		rows := map[string]bool{}
		all := w.Records("t-table")
		for _, rec := range all {
			key := fmt.Sprint(rec.Partition, " ", string(rec.Key)) // the rows of applied offsets exist in each partition
			switch {
			case isLocal(string(rec.Key)):
			case rec.Value == nil || rows[key]:
				return false
			default:
				rows[key] = true
			}
		}
		after = len(all)
		return true
	})
	t.Logf("compaction kept %[2]d of %[1]d records of the table", before, after)
	expect.True(t, after < before, "compaction removed records")
}

func TestRealKafkaRecoveryOfACompactedTable(t *testing.T) {
	w := newRealWire(t)
	w.compacts(t, 0)
	const users, each = 50, 20
	warm := t.TempDir()
	r, stop := w.run(t, warm, tortureGroup(w))
	w.send(t, "t-in", 0, users*each, func(i int) string { return user(i % users) })
	eventually.True(t, "all are applied", func() bool { return r.Status().Counters.Records == users*each })
	must.OK(t, stop())
	w.waitForCompaction(t)
	want := map[string]int64{}
	for round, dir := range []string{warm, t.TempDir()} {
		for u := range users {
			want[user(u)] = int64(each + round)
		}
		w.holdsFrom(t, dir, want)
		r, stop := w.run(t, dir, tortureGroup(w))
		w.send(t, "t-in", users*(each+round), users, func(i int) string { return user(i % users) })
		eventually.True(t, "one more record per user is applied", func() bool { return r.Status().Counters.Records == users })
		must.OK(t, stop())
		w.waitForCompaction(t)
	}
	w.emittedOnce(t, users*(each+2))
}

// holdsFrom checks that a member with a directory recovers rows that count the expected number of records per user.
func (w *wire) holdsFrom(t *testing.T, dir string, want map[string]int64) {
	t.Helper()
	r, stop := w.run(t, dir, tortureGroup(w))
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	for owner, n := range want {
		newest := 0
		must.OK(t, r.View().Read(t.Context(), owner, func(s Snapshot) error {
			return s.Scan(Scan{Prefix: []byte("e")}, func(_, _ []byte) bool { newest++; return true })
		}))
		if got := count(t, r, owner); int64(got) != n || newest != int(min(n, 3)) {
			t.Errorf("%s is counted %d times and has %d other rows, want %d and %d", owner, got, newest, n, min(n, 3))
		}
	}
	must.OK(t, stop())
}

// Three members share the group while the table is compacted. Each in turn leaves, and rejoins with a store whose changelog
// was compacted in the meantime.
func TestRealKafkaMembersOverACompactedTable(t *testing.T) {
	c := &cluster{wire: newRealWire(t), net: faultnet.New()}
	c.compacts(t, topics.DeletionsKept)
	m := &memberSet{t: t, c: c, dirs: []string{t.TempDir(), t.TempDir(), t.TempDir()}}
	var leave []func()
	for _, dir := range m.dirs {
		leave = append(leave, m.join(dir))
	}
	d := drive(t, c.wire, 300)
	eventually.True(t, "the group has three members", func() bool { return len(c.members(t)) == 3 })
	for i, dir := range m.dirs {
		leave[i]()
		c.shrinks(t)
		d.caughtUp(t, "without one member")
		leave[i] = m.join(dir)
		eventually.True(t, "the member has rejoined", func() bool { return len(c.members(t)) == 3 })
	}
	d.cancel()
	<-d.done
	d.caughtUp(t, "at the end")
	for i := range leave {
		leave[i]()
	}
	want := d.holdsRows(t)
	expect.Equal(t, m.errs.Load(), 0, "runs that ended with an error")
	for _, dir := range append(m.dirs, t.TempDir()) {
		c.holdsFrom(t, dir, want)
	}
}

// shrinks waits until compaction has removed some of the present records in each partition of the table, while it is
// written.
func (w *wire) shrinks(t *testing.T) {
	t.Helper()
	held := map[int32]int{}
	ends := map[int32]int64{}
	for _, rec := range w.Records("t-table") {
		held[rec.Partition]++
		ends[rec.Partition] = rec.Offset
	}
	eventually.True(t, "some records of each partition are removed", func() bool {
		left := map[int32]int{}
		for _, rec := range w.Records("t-table") {
			if rec.Offset <= ends[rec.Partition] {
				left[rec.Partition]++
			}
		}
		for p, before := range held {
			if left[p] >= before {
				return false
			}
		}
		return true
	})
}

// keeper returns a group with one row per user: the first n records put the rows, the others delete them.
func (w *wire) keeper(n schemas.Micros) Group {
	return Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
		if rec.Time >= n {
			tx.Own().Delete([]byte("n"))
			return nil
		}
		increment(tx.Own())
		return nil
	})}}
}

// A member acquires partitions that another member owned for longer than the changelog keeps tombstones.
func TestRealKafkaStoreOfflineTooLong(t *testing.T) {
	w := newRealWire(t)
	w.compacts(t, 0)
	const n = 40
	rows := func(dir string, keeps time.Duration, from, send int) (there int) {
		r := newRunner(t, w, dir, w.keeper(n))
		expect.Equal(t, r.maxOffline, maxStoreOffline, "stores may be offline for")
		r.maxOffline = keeps
		stop := start(t, r)
		eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
		w.send(t, "t-in", from, send, func(i int) string { return user(i - from) })
		eventually.True(t, "all are applied", func() bool { return r.Status().Counters.Records == int64(send) })
		for u := range n {
			there += count(t, r, user(u))
		}
		must.OK(t, stop())
		return there
	}
	away := t.TempDir()
	must.Equal(t, rows(away, maxStoreOffline, 0, n), n, "rows at first")
	must.Equal(t, rows(t.TempDir(), maxStoreOffline, n, n), 0, "rows after all were deleted")
	w.waitForCompaction(t)
	expect.Equal(t, rows(away, maxStoreOffline, 0, 0), n, "rows in a store that is not rebuilt")
	expect.Equal(t, rows(away, time.Nanosecond, 0, 0), 0, "deleted rows that reappeared")
}
