package rows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// twin returns a group that keeps two rows of an owner equal.
func (w *wire) twin() Group {
	return Group{Name: "t", Inputs: []Input{Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
		n := increment(tx.Own())
		tx.Own().Put([]byte("m"), []byte{byte(n >> 8), byte(n)})
		return nil
	})}}
}

func TestView_ReadsOneCommitAtATime(t *testing.T) {
	w := parallelWire(t)
	r, _ := w.run(t, t.TempDir(), w.twin())
	owner, n := user(1), 3000
	for i := range n { // no wait: they arrive while the view is read
		w.client.Produce(t.Context(), w.record(t, "t-in", owner, i), nil)
	}
	last, reads := 0, 0
	for last < n && !t.Failed() {
		changed := r.View().Changed(owner)
		err := r.View().Read(t.Context(), owner, func(s Snapshot) error {
			a, _, err := Value[Number](s, []byte("n"))
			if err != nil {
				return err
			}
			b, sum := []byte(nil), 0
			err = s.Scan(Scan{Prefix: []byte("m")}, func(_, value []byte) bool { b = append(b, value...); return true })
			if b != nil {
				sum = int(b[0])<<8 | int(b[1])
			}
			if got := int(a); err != nil || got != sum || int(s.Applied("t-in")) != got-1 {
				t.Errorf("rows of one commit: n %d, m %d, applied %d, %v", got, sum, s.Applied("t-in"), err)
			}
			last = sum
			return nil
		})
		if !errors.Is(err, schemas.ErrNotOwner) {
			must.OK(t, err)
		}
		reads++
		if last < n {
			select {
			case <-changed:
			case <-time.After(patience):
				t.Fatalf("no change for %s, at %d", patience, last)
			}
		}
	}
	expect.AtLeast(t, reads, 3, "reads between commits")
}

func TestHasRows(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.twin())
	found, err := HasRows(t.Context(), r.View(), user(1))
	expect.False(t, found, "partition of another process has rows")
	expect.Is(t, err, schemas.ErrNotOwner, "partition of another process")
	start(t, r)
	w.client.Produce(t.Context(), w.record(t, "t-in", user(1), 0), nil)
	eventually.True(t, "the owner has rows", func() bool {
		found, err := HasRows(t.Context(), r.View(), user(1))
		return found && err == nil
	})
	eventually.True(t, "another owner has none", func() bool {
		found, err := HasRows(t.Context(), r.View(), user(1)+"0")
		return !found && err == nil
	})
}

func TestView_Owners(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.twin())
	owners := func(prefix string, most int) (list []string, err error) {
		for p := range int32(len(r.slots)) {
			err = errors.Join(err, r.View().Owners(t.Context(), p, prefix, func(owner string) bool {
				list = append(list, owner)
				return len(list) < most
			}))
		}
		slices.Sort(list)
		return list, err
	}
	list, err := owners("user:", 9)
	expect.NoDiff(t, list, nil, "partitions of another process")
	expect.Is(t, err, schemas.ErrNotOwner, "partitions of another process")
	start(t, r)
	for _, i := range []int{1, 12, 125, 2, 12} {
		w.client.Produce(t.Context(), w.record(t, "t-in", user(i), 0), nil)
	}
	eventually.True(t, "every owner is listed once", func() bool {
		list, err := owners("user:", 9)
		return err == nil && slices.Equal(list, []string{"user:1", "user:12", "user:125", "user:2"})
	})
	list = must.Get(owners("user:12", 9))(t)
	expect.NoDiff(t, list, []string{"user:12", "user:125"}, "owners with the prefix")
	for _, p := range []int32{-1, int32(len(r.slots))} { // of a process with another number of partitions
		expect.Is(t, r.View().Owners(t.Context(), p, "user:", nil), schemas.ErrNotOwner, "partition %d", p)
	}
}

func TestView_NotOwner(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.twin())
	notHere := func(when string) {
		t.Helper()
		err := r.View().Read(t.Context(), "user:1", func(Snapshot) error { return nil })
		gone := must.As[*NotOwnerError](t, err)
		expect.Equal(t, [2]string{gone.Group, gone.Owner}, [2]string{"t", "user:1"}, "%s: group and owner", when)
		expect.Equal(t, gone.Partition, r.partitionOf("user:1"), "%s: partition", when)
	}
	session := func() (number uint64, since time.Time) {
		eventually.True(t, "this process owns the partition", func() bool {
			return r.View().Read(t.Context(), "user:1", func(s Snapshot) error { number, since = s.Session(), s.Since(); return nil }) == nil
		})
		return number, since
	}
	notHere("before Run")
	arrives := r.View().Changed("user:1")
	stop := start(t, r)
	select {
	case <-arrives:
	case <-time.After(patience):
		t.Fatal("Changed was not closed when the partition was acquired")
	}
	first, since := session()
	leaves := r.View().Changed("user:1")
	must.OK(t, stop())
	<-leaves
	notHere("after Run")
	start(t, r)
	second, again := session()
	expect.True(t, second > first, "session %d after %d: it never repeats", second, first)
	expect.True(t, again.After(since), "owned since %s, and since %s after a gap", since, again)
}

// Consecutive consumer-group generations leave no time in which another process could own the partition.
func TestView_Since(t *testing.T) {
	t.Parallel()
	r := Runner{slots: make([]slot, 2)}
	began := r.assigned(1, 7)
	for turn := int32(8); turn < 10; turn++ {
		expect.Equal(t, r.assigned(1, turn), began, "generation %d after its predecessor: owned since", turn)
	}
	for _, turn := range []int32{11, 2, 2} { // one is missing; the group was recreated; another process with the same name
		since := r.assigned(1, turn)
		expect.True(t, since.After(began), "generation %d: owned since %s, a new time", turn, since)
		began = since
	}
	if other := r.assigned(0, 3); other.Before(began) {
		t.Errorf("another partition: owned since %s", other)
	}
}

func TestView_ReturnsErrorsOfItsCaller(t *testing.T) {
	w := parallelWire(t)
	r, _ := w.run(t, t.TempDir(), w.twin())
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Is(t, r.View().Read(ctx, "user:1", func(Snapshot) error { return nil }), context.Canceled, "read with a canceled context")
	mine := errors.New("mine")
	expect.Equal(t, r.View().Read(t.Context(), "user:1", func(Snapshot) error { return mine }), mine, "read")
	expect.Fails(t, r.View().Read(t.Context(), "", func(Snapshot) error { return nil }), "reserved rows of the empty owner")
}

// Scans of a snapshot share an iterator: consecutive scans, nested scans, and a scan after one that ended early.
func TestSnapshot_NestedScans(t *testing.T) {
	t.Parallel()
	db := must.Get(pebble.Open("", &pebble.Options{FS: vfs.NewMem()}))(t)
	for _, key := range []string{"u\x00a1", "u\x00a2", "u\x00b1", "u\x00b2", "u\x00b3", "v\x00a1"} {
		must.OK(t, db.Set([]byte(key), nil, pebble.NoSync))
	}
	s := &snapshot{rows: db.NewSnapshot(), owner: "u"}
	var got []string
	scan := func(sc Scan, visit func(row string) bool) {
		must.OK(t, s.Scan(sc, func(row, _ []byte) bool { got = append(got, string(row)); return visit(string(row)) }))
	}
	all := func(string) bool { return true }
	scan(Scan{Prefix: []byte("b"), Limit: 2}, all)
	scan(Scan{Prefix: []byte("a"), Reverse: true}, func(row string) bool {
		scan(Scan{From: []byte("b2")}, func(string) bool { return false })
		return true
	})
	scan(Scan{Prefix: []byte("b"), Reverse: true}, all)
	scan(Scan{Prefix: []byte("c")}, all)
	expect.NoDiff(t, got, strings.Fields("b1 b2 a2 b2 a1 b2 b3 b2 b1"), "visited rows")
	expect.Error(t, errors.Join(s.close(), db.Close()), "", "close")
}
