package topics_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// deleted returns a record of users-deleted; time 0 makes a tombstone.
func (w *wire) deleted(t *testing.T, user schemas.UserID, at schemas.Micros) *kgo.Record {
	t.Helper()
	r := &kgo.Record{Topic: topics.UsersDeleted, Key: []byte(user)}
	if at > 0 {
		r.Value = must.Get(w.Streams.UsersDeleted.Encode(&schemas.DeletedUser{User: user, Time: at}))(t)
	}
	return r
}

func logTo(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func waitReady(t *testing.T, ready <-chan struct{}) {
	t.Helper()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("not ready within 10 s")
	}
}

// deletedUsers runs a global table of an instance until the test ends or stop is called. The table is ready.
func (w *wire) deletedUsers(t *testing.T, instance string) (table topics.DeletedUsers, stop func() error) {
	t.Helper()
	table = topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(w.Kafka, w.Streams.UsersDeleted, instance, logTo(t))}
	stop = topicstest.Run(t, table.Run)
	waitReady(t, table.Ready())
	return table, stop
}

func TestGlobalTable_HoldsNewestRecordOfEachKey(t *testing.T) {
	w := newWire(t)
	for i := range 50 {
		w.Send(w.deleted(t, schemas.UserID(fmt.Sprintf("user:%d", i)), 1))
	}
	w.Send(w.deleted(t, "user:7", 9), w.deleted(t, "user:8", 0))

	table := topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(w.Kafka, w.Streams.UsersDeleted, "a", logTo(t))}
	expect.False(t, table.Has("user:7"), "a user is present before Run")
	stop := topicstest.Run(t, table.Run)
	waitReady(t, table.Ready())
	if got, ok := table.Get("user:7"); !ok || got.Time != 9 {
		t.Errorf("user:7 = %v, want the newest record, of time 9", got)
	}
	expect.False(t, table.Has("user:8"), "a user after its tombstone")
	expect.Equal(t, table.Len(), 49, "users after one tombstone")

	w.Send(w.deleted(t, "user:new", 1), w.deleted(t, "user:7", 0))
	eventually.True(t, "later records", func() bool { return table.Has("user:new") && !table.Has("user:7") })
	eventually.True(t, "its offset is committed", func() bool {
		return w.Committed("users-deleted-global-table-a", topics.UsersDeleted) == w.End(topics.UsersDeleted)
	})
	must.OK(t, stop())

	w.Send(w.deleted(t, "user:later", 1))
	topicstest.Run(t, table.Run)
	eventually.True(t, "records from while it was stopped", func() bool { return table.Has("user:later") })
	expect.Equal(t, table.Len(), 50, "users after the second Run")
}

func TestGlobalTable_ReportsChanges(t *testing.T) {
	w := newWire(t)
	w.Send(w.deleted(t, "user:a", 1), w.deleted(t, "user:a", 2))
	table := topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(w.Kafka, w.Streams.UsersDeleted, "a", logTo(t))}
	changes := make(chan string, 10)
	table.OnChange(func(key string, was, is *schemas.DeletedUser) {
		at := func(d *schemas.DeletedUser) schemas.Micros {
			if d == nil {
				return 0
			}
			return d.Time
		}
		changes <- fmt.Sprintf("%s %d %d", key, at(was), at(is))
	})
	topicstest.Run(t, table.Run)
	waitReady(t, table.Ready())
	w.Send(w.deleted(t, "user:a", 0))
	for _, want := range []string{"user:a 0 1", "user:a 1 2", "user:a 2 0"} {
		select {
		case got := <-changes:
			expect.Equal(t, got, want, "change")
		case <-time.After(time.Minute):
			t.Fatalf("no change, want %q", want)
		}
	}
}

// A new process with the name of an earlier one is ready only after it has read the records itself.
func TestGlobalTable_StartsOverInNewProcess(t *testing.T) {
	w := newWire(t)
	w.Send(w.deleted(t, "user:a", 1))
	_, stop := w.deletedUsers(t, "a")
	_ = stop()

	second, _ := w.deletedUsers(t, "a")
	expect.True(t, second.Has("user:a"), "the second process has user:a when it is ready")
}

func TestGlobalTable_SkipsUndecodableRecords(t *testing.T) {
	w := newWire(t)
	w.Send(w.deleted(t, "user:a", 1), &kgo.Record{Topic: topics.UsersDeleted, Key: []byte("user:b"), Value: []byte("?")}, w.deleted(t, "user:c", 1))
	table, _ := w.deletedUsers(t, "a")
	expect.Equal(t, [3]bool{table.Has("user:a"), table.Has("user:b"), table.Has("user:c")}, [3]bool{true, false, true}, "users a, b and c")
}

// flakyRegistry is unavailable at first, for any schema.
type flakyRegistry struct {
	topics.Registry
	requests atomic.Int64
	failing  int64 // number of requests that fail
	text     string
}

func (f *flakyRegistry) SchemaByID(context.Context, int) (string, error) {
	if f.requests.Add(1) <= f.failing {
		return "", schemas.ErrRegistryUnavailable
	}
	return f.text, nil
}

// A record that cannot be decoded because the registry is unavailable is not skipped. Run returns an error, and resumes at
// the record when it is called again.
func TestGlobalTable_RetriesWhenRegistryIsUnavailable(t *testing.T) {
	w := newWire(t)
	known := must.Get(schemas.NewRegistry(w.Registry))(t)
	registry := &flakyRegistry{Registry: known, failing: 1}
	streams := must.Get(topics.Open(t.Context(), registry))(t)
	foreign := w.deleted(t, "user:b", 1)
	id := int(binary.BigEndian.Uint32(foreign.Value[1:]))
	registry.text = must.Get(known.SchemaByID(t.Context(), id))(t)
	topicstest.ByOtherWriter(foreign.Value)
	w.Send(w.deleted(t, "user:a", 1), foreign, w.deleted(t, "user:c", 1))
	table := topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(w.Kafka, streams.UsersDeleted, "a", logTo(t))}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit())
	defer cancel()
	expect.Is(t, table.Run(ctx), schemas.ErrRegistryUnavailable, "Run")
	topicstest.Run(t, table.Run)
	waitReady(t, table.Ready())
	expect.Equal(t, [3]bool{table.Has("user:a"), table.Has("user:b"), table.Has("user:c")}, [3]bool{true, true, true}, "users a, b and c")
	expect.True(t, registry.requests.Load() >= 2, "requests to the registry after the failed one")
}

// A reader skips a record that can never be decoded, and fails if the registry is unavailable.
func TestDecoded_FailsWhenRegistryIsUnavailable(t *testing.T) {
	w := newWire(t)
	var got []schemas.UserID
	read := topics.Decoded(w.WithoutRegistry().UsersDeleted, func(d *schemas.DeletedUser, _ *kgo.Record) error {
		got = append(got, d.User)
		return nil
	})
	good, foreign := w.deleted(t, "user:a", 1), w.deleted(t, "user:b", 1)
	topicstest.ByOtherWriter(foreign.Value)
	must.OK(t, read(&kgo.Record{Value: []byte("no record")}))
	must.OK(t, read(good))
	expect.Is(t, read(foreign), schemas.ErrRegistryUnavailable, "error")
	expect.NoDiff(t, got, []schemas.UserID{"user:a"}, "users")
}

// The broker treats a transaction that was open when it was killed as aborted, and writes no marker. So no readable record
// follows at the end of the log. A GlobalTable is ready nevertheless.
func TestGlobalTable_IsReadyAfterOpenTransactionEnds(t *testing.T) {
	w := newWire(t)
	w.Send(w.deleted(t, "user:a", 1))
	tx := w.begin(t, w.deleted(t, "user:never", 1))
	table := topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(w.Kafka, w.Streams.UsersDeleted, "a", logTo(t))}
	topicstest.Run(t, table.Run)
	eventually.True(t, "user:a", func() bool { return table.Has("user:a") })
	must.OK(t, tx.EndTransaction(context.Background(), kgo.TryAbort))
	waitReady(t, table.Ready())
	expect.False(t, table.Has("user:never"), "an aborted record is in the table")
}
