package rows

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// A group never starts with a changelog that has lost records of the group. It would read
// inputs again and double their effects.
func TestChangelog_LostRecordsStopTheGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(t *testing.T, w *wire, dir string) (startIn string)
		want string
	}{
		"recreated, with the local store": {func(t *testing.T, w *wire, dir string) string {
			w.recreate(t, "t-table")
			return dir
		}, "topic t-table was recreated"},
		"recreated, without the local store": {func(t *testing.T, w *wire, _ string) string {
			w.recreate(t, "t-table")
			return t.TempDir()
		}, "topic t-table was recreated"},
		"truncated, with the local store": {func(t *testing.T, w *wire, dir string) string {
			setLocal(t, filepath.Join(dir, "t-table", "0"), offsetKind, offsetAt(uint64(w.tableEnd(t)), time.Now()))
			return dir
		}, "t-table/0 ends at"},
		"truncated, without the local store": {func(t *testing.T, w *wire, _ string) string {
			w.commitMark(t, w.tableEnd(t))
			return t.TempDir()
		}, "t-table/0 ends at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir := newWire(t), t.TempDir()
			w.countFirst(t, dir, 20)
			in := c.lose(t, w, dir)
			for range 3 { // a start must not write anything that lets the next one succeed
				err := w.runUntil(t, newRunner(t, w, in, w.counter("t-in")))
				must.As[*FatalError](t, err)
				expect.Error(t, err, c.want, "Run")
				expect.Error(t, err, wantRemedy, "Run")
			}
			w.emittedOnce(t, 20)
		})
	}
}

// A group whose changelog was recreated on purpose starts after the operator has deleted the offsets that the error names.
func TestChangelog_RecreatedOnPurposeStartsWithoutOffsets(t *testing.T) {
	t.Parallel()
	w, dir := newWire(t), t.TempDir()
	w.countFirst(t, dir, 20)
	w.recreate(t, "t-table")
	must.Get(w.admin.DeleteGroup(t.Context(), "t"))(t)
	r, _ := w.run(t, t.TempDir(), w.counter("t-in"))
	whileRunning(t, r, "all are applied again", func() bool { return r.Status().Counters.Records == 20 })
}

// runUntil runs a group until Run returns, or until all records are applied again. It returns Run's error.
func (w *wire) runUntil(t *testing.T, r *Runner) error {
	t.Helper()
	stop := start(t, r)
	eventually.True(t, "Run returns, or the group is ready", func() bool {
		return r.runs.Load() > 0 && !r.running.Load() || r.Status().Ready
	})
	return stop()
}

func (w *wire) recreate(t *testing.T, topic string) {
	t.Helper()
	w.DeleteTopics(topic)
	w.create(t, topic)
	eventually.True(t, "the topic exists", func() bool { return w.hasLeaders(topic) })
}

// tableEnd returns the end offset of partition 0 of the table.
func (w *wire) tableEnd(t *testing.T) int64 {
	t.Helper()
	ends := must.Get(w.admin.ListEndOffsets(t.Context(), "t-table"))(t)
	end, _ := ends.Lookup("t-table", 0)
	return end.Offset
}

// commitMark writes, to the metadata of the group's committed offsets, that partition 0 of the table had a record at an offset.
func (w *wire) commitMark(t *testing.T, at int64) {
	t.Helper()
	topics := must.Get(w.admin.ListTopics(t.Context(), "t-table"))(t)
	committed := must.Get(w.admin.FetchOffsets(t.Context(), "t"))(t)
	offset, _ := committed.Lookup("t-in", 0)
	if was, ok := parseMark(offset.Metadata); !ok || was.topic != topics["t-table"].ID || was.offset < 0 || was.offset >= at {
		t.Fatalf("the group committed %q with its offsets, want a mark of its changelog before %d", offset.Metadata, at)
	}
	offset.Metadata = formatMark(position{topic: topics["t-table"].ID, offset: at})
	offsets := kadm.Offsets{}
	offsets.Add(offset.Offset)
	eventually.True(t, "the group is empty", func() bool {
		set, err := w.admin.CommitOffsets(t.Context(), "t", offsets)
		return err == nil && set.Error() == nil
	})
}

// A previous owner starts a transaction after the new owner has recovered and before its first commit. The transaction has
// no effect: the new owner would not see its rows.
func TestFence_PreviousOwnerCannotStartAnotherTransaction(t *testing.T) {
	w := parallelWire(t)
	zombie := must.Get(w.Kafka.Transactional("t-0"))(t)
	defer zombie.Close()
	_, _, err := zombie.ProducerID(t.Context())
	must.OK(t, err)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	whileRunning(t, r, "the new owner has recovered", func() bool { return r.Status().Ready })
	must.OK(t, zombie.BeginTransaction())
	err = zombie.ProduceSync(t.Context(), strayRow(0)).FirstErr()
	if end := topics.EndTransaction(t.Context(), zombie, kgo.TryCommit, "t-table"); err == nil && end == nil {
		t.Error("the previous owner has committed a transaction")
	}
	must.OK(t, stop())
	for _, row := range w.Records("t-table") {
		expect.False(t, string(row.Value) == strayValue, "the table has a row of the previous owner at offset %d", row.Offset)
	}
}
