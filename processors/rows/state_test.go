package rows

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// bench is a state without Kafka: batches over a store in memory.
type bench struct {
	state
	tx Tx
	db *pebble.DB
}

type benchT interface {
	must.T
	expect.T
	Cleanup(func())
}

func newBench(t benchT, g Group) *bench {
	t.Helper()
	db := must.Get(pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: stored.Logger(silent(), "store")}))(t)
	t.Cleanup(func() { _ = db.Close() })
	topo := must.Get(newTopology(g, testPartitions, topics.DeadLetters))(t)
	cfg := DefaultConfig()
	return &bench{db: db, state: state{
		topo: topo, cfg: &cfg, common: CommonOwner(0, testPartitions), store: db, pending: newBatch(1), recent: newRecentRows(400), existing: newExisting(1 << 20),
	}}
}

func (b *bench) originTime() int64 { return 1 }

// call runs a callback as that of a batched input.
func (b *bench) call(f func(tx *Tx) error) error {
	b.begin(&b.tx, "key", "", time.UnixMicro(1), b)
	return b.end(&b.tx, f(&b.tx))
}

// callAs runs a callback as that of a keyed input.
func (b *bench) callAs(key string, f func(tx *Tx) error) error {
	b.begin(&b.tx, key, key, time.UnixMicro(1), b)
	return b.end(&b.tx, f(&b.tx))
}

// seal seals the pending batch, and land applies it to the store, as the committer does.
func (b *bench) seal() {
	if b.committing == nil {
		b.committing, b.pending = b.pending, newBatch(1)
		b.committing.sealed = true
	}
}

func (b *bench) applyBatch(t benchT) {
	t.Helper()
	if b.committing == nil {
		return
	}
	out := b.db.NewBatch()
	order := b.committing.inOrder(nil)
	sorted := slices.IsSortedFunc(order, func(x, y keyed) int {
		return bytes.Compare(b.committing.at(b.committing.writes[x.write].key), b.committing.at(b.committing.writes[y.write].key))
	})
	expect.True(t, sorted, "writes to the store are in the order of their keys")
	must.OK(t, b.committing.copyTo(out, order))
	must.OK(t, out.Commit(pebble.NoSync))
	b.committed()
}

// group returns a topology for tests of callbacks.
func group() Group {
	return Group{Name: "g", Inputs: []Input{{topic: "in"}}, Outputs: []string{"out"},
		Timer: func(*Tx, Owner, []byte, time.Time) error { return nil }}
}

// ownersOfPartition0 returns owners of partition 0 of four.
func ownersOfPartition0(n int) []string { return topicstest.KeysIn("o", 0, testPartitions, n) }

// TestState_ReadsNewestWrite compares random reads, writes, failed callbacks, commits in flight and completed, and lists of existing
// rows with a map of maps.
func TestState_ReadsNewestWrite(t *testing.T) {
	owners := append(ownersOfPartition0(2), ownersOfPartition0(3)[2]+"\x01") // one has another as a prefix, if it hashes to this partition
	owners = slices.DeleteFunc(owners, func(o string) bool { return topics.Partition(o, testPartitions) != 0 })
	rows := rapid.SampledFrom([]string{"", "a", "a\x00", "ab", "b", "b\xff", "b\xff\xff", "c", "\x00", "\xff", "\xff\xff"})
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, group())
		var hashes []uint64 // of the rows in the last snapshot
		want := map[string]map[string]string{}
		for _, o := range owners {
			want[o] = map[string]string{}
		}
		t.Repeat(map[string]func(*rapid.T){
			"callback": func(t *rapid.T) {
				fails := rapid.Bool().Draw(t, "fails")
				next := map[string]map[string]string{}
				for o := range want {
					next[o] = maps.Clone(want[o])
				}
				err := b.call(func(tx *Tx) error {
					for range rapid.IntRange(0, 12).Draw(t, "steps") {
						step(t, tx, next, owners, rows)
					}
					if fails {
						return schemas.Bad("on purpose")
					}
					return nil
				})
				if !fails {
					must.OK(t, err)
					want = next
				}
			},
			"seal":  func(t *rapid.T) { b.seal() },
			"apply": func(t *rapid.T) { b.applyBatch(t) },
			"begin to list the rows": func(t *rapid.T) {
				if b.existing.begin(); rapid.Bool().Draw(t, "a batch before the snapshot") {
					b.applyBatch(t)
				}
				var err error
				hashes, _, err = b.existing.scan(context.Background(), b.db)
				must.OK(t, err)
			},
			"end it": func(t *rapid.T) {
				if b.existing.scanning {
					b.existing.end(hashes, rapid.IntRange(0, 3).Draw(t, "incomplete") > 0)
				}
			},
			"": func(t *rapid.T) {
				for _, o := range owners {
					same(t, b, o, want[o])
				}
			},
		})
	})
}

// step makes one random read or write and compares the result with the model.
func step(t *rapid.T, tx *Tx, model map[string]map[string]string, owners []string, rows *rapid.Generator[string]) {
	owner := rapid.SampledFrom(owners).Draw(t, "owner")
	o, m, row := tx.Of(owner), model[owner], rows.Draw(t, "row")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0, 1:
		value := rapid.StringN(0, 5, -1).Draw(t, "value")
		o.Put([]byte(row), []byte(value))
		m[row] = value
	case 2:
		o.Delete([]byte(row))
		delete(m, row)
	case 3:
		got, err := o.Get([]byte(row))
		want, found := m[row]
		if err != nil || (got != nil) != found || string(got) != want {
			t.Fatalf("get %q of %s: %q, %v; want %q, %v", row, owner, got, err, want, found)
		}
	case 4:
		scanSame(t, o, m, drawScan(t, rows))
	}
}

func drawScan(t *rapid.T, rows *rapid.Generator[string]) Scan {
	s := Scan{Reverse: rapid.Bool().Draw(t, "reverse"), Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "with prefix") {
		s.Prefix = []byte(rows.Draw(t, "prefix"))
	}
	if rapid.Bool().Draw(t, "with from") {
		s.From = []byte(rows.Draw(t, "from"))
	}
	return s
}

// scanned returns the rows that a scan should visit.
func scanned(m map[string]string, s Scan) []string {
	var out []string
	for _, row := range slices.Sorted(maps.Keys(m)) {
		before := s.From != nil && row < string(s.From)
		beyond := s.From != nil && row > string(s.From)
		if !strings.HasPrefix(row, string(s.Prefix)) || !s.Reverse && before || s.Reverse && beyond {
			continue
		}
		out = append(out, row+"="+m[row])
	}
	if s.Reverse {
		slices.Reverse(out)
	}
	if s.Limit > 0 && len(out) > s.Limit {
		out = out[:s.Limit]
	}
	return out
}

func scanSame(t *rapid.T, o Owner, m map[string]string, s Scan) {
	var got []string
	// The visit writes rows that the scan has not reached yet. This must not affect the scan.
	clobber := rapid.Bool().Draw(t, "write while scanning")
	want := scanned(m, s)
	err := o.Scan(s, func(row, value []byte) bool {
		got = append(got, string(row)+"="+string(value))
		if clobber {
			name := append(bytes.Clone(row), 'x')
			o.Put(name, []byte("w"))
			must.Get(o.Get(name))(t)
			m[string(name)] = "w"
		}
		return true
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("scan %+v: %q, %v; want %q", s, got, err, want)
	}
}

// same compares all rows of an owner with the model.
func same(t *rapid.T, b *bench, owner string, want map[string]string) {
	got := map[string]string{}
	err := b.scan(owner, Scan{}, func(row, value []byte) bool {
		got[string(row)] = string(value)
		return true
	})
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("rows of %s: %q, %v; want %q", owner, got, err, want)
	}
	for row, value := range want {
		if got, err := b.get(owner, []byte(row)); err != nil || got == nil || string(got) != value {
			t.Fatalf("row %q of %s: %q, %v; want %q", row, owner, got, err, value)
		}
	}
}

// Each row is sent once, with its last write.
func TestState_ReplacedWritesAreNotSent(t *testing.T) {
	b := newBench(t, group())
	for i := range 5 {
		must.OK(t, b.callAs("k", func(tx *Tx) error {
			if _, err := tx.Own().Get([]byte("n")); err != nil {
				return err
			}
			tx.Own().Put([]byte("n"), []byte{byte(i)})
			return nil
		}))
	}
	must.Get(b.get("k", []byte("n")))(t)
	records := new(transactionRecords).fill(b.pending, b.topo, 0)
	if len(records) != 1 || !bytes.Equal(records[0].Value, []byte{4}) {
		t.Errorf("records %v, want one with the last value", records)
	}
}

func TestTx_RejectsOtherOwners(t *testing.T) {
	here, elsewhere := ownersOfPartition0(1)[0], ownerIn(1)
	keyed := func(f func(tx *Tx)) func(b *bench) error {
		return func(b *bench) error { return b.callAs(here, writing(f)) }
	}
	batched := func(f func(tx *Tx)) func(b *bench) error {
		return func(b *bench) error { return b.call(writing(f)) }
	}
	put := func(owner string) func(tx *Tx) { return func(tx *Tx) { tx.Of(owner).Put([]byte("r"), nil) } }
	common := func(tx *Tx) { tx.Common().Put([]byte("r"), nil) }
	for _, c := range []struct {
		name string
		call func(b *bench) error
		want string // in the error; "": no error
		bad  bool   // a bad record
	}{
		{name: "keyed, own", call: keyed(put(here))},
		{name: "keyed, of another owner", call: keyed(put("x")), want: `rows of "x"`},
		{name: "batched, of the partition", call: batched(put(here))},
		{name: "batched, of another partition", call: batched(put(elsewhere)), want: "its partition is", bad: true},
		{name: "batched, without an owner", call: batched(func(tx *Tx) { tx.Own().Put(nil, nil) }), want: "no single owner"},
		{name: "keyed, common", call: keyed(common)},
		{name: "batched, common", call: batched(common)},
		{name: "keyed, of another owner after common rows", call: keyed(func(tx *Tx) { common(tx); put("x")(tx) }), want: `rows of "x"`},
		{name: "keyed, common rows after another owner", call: keyed(func(tx *Tx) { put("x")(tx); common(tx) }), want: `rows of "x"`},
		{name: "empty owner", call: batched(put("")), want: "empty owner", bad: true},
		{name: "zero byte", call: batched(put("a\x00b")), want: "zero byte", bad: true},
		{name: "undeclared topic", call: batched(func(tx *Tx) { tx.Emit("x", "k", nil) }), want: "not among the outputs"},
		{name: "no such partition", call: batched(func(tx *Tx) { tx.EmitTo("out", 4, "k", nil) }), want: "partition 4 of 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, group())
			err := c.call(b)
			expect.Error(t, err, c.want, "callback")
			expect.Equal(t, errors.As(err, new(*schemas.BadRecordError)), c.bad, "a bad record")
			if written := len(b.pending.writes) + len(b.pending.emits); err != nil && written != 0 {
				t.Errorf("%d writes of a failed callback remain", written)
			}
		})
	}
}

func TestTx_Limits(t *testing.T) {
	long := func(n int) []byte { return make([]byte, n) }
	cfg := Config{MaxRecordWrites: 3, MaxRecordWriteBytes: 5000, MaxValueBytes: 50}
	for _, c := range []struct {
		name string
		call func(tx *Tx)
		want string // in the error; "": no error
	}{
		{"maximum of rows", func(tx *Tx) { puts(tx, 3) }, ""},
		{"too many rows", func(tx *Tx) { puts(tx, 4) }, "more than 3 rows"},
		{"rows and records together", func(tx *Tx) { puts(tx, 3); tx.Emit("out", "k", nil) }, "more than 3 rows"},
		{"maximum length of a value", func(tx *Tx) { tx.Own().Put(nil, long(50)) }, ""},
		{"value too long", func(tx *Tx) { tx.Own().Put(nil, long(51)) }, "row of 51 bytes"},
		{"maximum length of a name", func(tx *Tx) { tx.Own().Put(long(maxNameBytes-1), nil) }, ""},
		{"name too long", func(tx *Tx) { tx.Own().Put(long(maxNameBytes), nil) }, "row name of 4097 bytes"},
		{"timer name too long", func(tx *Tx) { tx.Own().SetTimer(time.Now(), long(maxNameBytes-10)) }, "timer name of 4097 bytes"},
		{"record too long", func(tx *Tx) { tx.Emit("out", "k", long(51)) }, "emit to out: 51 bytes"},
		{"too many bytes", func(tx *Tx) { tx.Own().Put(long(4000), nil); tx.Emit("out", string(long(1000)), nil) }, "more than 5000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, group())
			b.cfg = &cfg
			err := b.callAs("k", writing(c.call))
			expect.Error(t, err, c.want, "callback")
			expect.Equal(t, errors.As(err, new(*schemas.BadRecordError)), c.want != "", "a bad record")
		})
	}
}

// A callback may write as much as Room returns, and no more.
func TestTx_Room(t *testing.T) {
	for _, c := range []struct {
		name string
		more int
		bad  bool
	}{{"exactly", 0, false}, {"one byte more", 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, group())
			b.cfg = &Config{MaxRecordWrites: 5, MaxRecordWriteBytes: 100, MaxValueBytes: 100}
			err := b.callAs("k", func(tx *Tx) error {
				puts(tx, 2)
				tx.Emit("out", "k", []byte("v"))
				rows, bytes := tx.Room()
				expect.Equal(t, rows, 2, "room for rows after 3 of 5 are written")
				tx.Emit("out", "k", make([]byte, bytes-len("k")+c.more))
				return nil
			})
			expect.Equal(t, err != nil, c.bad, "callback fails")
		})
	}
}

func puts(tx *Tx, n int) {
	for i := range n {
		tx.Own().Put([]byte{byte(i)}, nil)
	}
}

func TestTx_UnusableAfterCallback(t *testing.T) {
	b := newBench(t, group())
	var own Owner
	must.OK(t, b.callAs("k", func(tx *Tx) error { own = tx.Own(); return nil }))
	for name, use := range map[string]func(){
		"emit": func() { b.tx.Emit("out", "k", nil) }, "put": func() { own.Put(nil, nil) }, "timer": func() { own.SetTimer(time.Now(), nil) },
		"get": func() { _, _ = own.Get(nil) },
	} {
		use()
		rows, bytes := b.tx.Room()
		expect.Equal(t, [2]int{rows, bytes}, [2]int{}, "Room")
		expect.Is(t, b.callAs("k", func(*Tx) error { return nil }), errUsedAfter, "%s: the next callback", name)
		must.OK(t, b.callAs("k", func(*Tx) error { return nil }))
	}
	expect.Is(t, expect.ErrorOf(own.Get(nil)), errUsedAfter, "get")
}

// A failed write prevents all later ones, and reads return its error.
func TestTx_StopsAfterFailedWrite(t *testing.T) {
	b := newBench(t, group())
	err := b.callAs("k", func(tx *Tx) error {
		tx.Own().Put([]byte("first"), nil)
		tx.Emit("x", "k", nil)
		tx.Own().Put([]byte("second"), nil)
		tx.Own().SetTimer(time.Now(), nil)
		tx.Emit("out", "k", nil)
		expect.Equal(t, len(b.pending.writes)+len(b.pending.emits), 1, "rows and records: only the row before the error")
		if _, err := tx.Own().Get([]byte("first")); err == nil || err != tx.Err() {
			t.Errorf("get: %v, want %v", err, tx.Err())
		}
		if err := tx.Own().Scan(Scan{}, func(_, _ []byte) bool { return true }); err == nil || err != tx.Err() {
			t.Errorf("scan: %v, want %v", err, tx.Err())
		}
		return nil
	})
	expect.Error(t, err, "emit to x", "error")
}

// A callback that was undone leaves no trace in the memory. One that was undone without a use of the memory does not clear it.
func TestMemory_IsDiscardedWithUndoneCallback(t *testing.T) {
	g := group()
	g.Memory = func() any { return new(int) }
	b := newBench(t, g)
	add := func(fails error) {
		_ = b.callAs("k", func(tx *Tx) error {
			*tx.Memory().(*int)++
			return fails
		})
	}
	held := func() (n int) {
		must.OK(t, b.callAs("k", func(tx *Tx) error {
			n = *tx.Memory().(*int)
			return nil
		}))
		return n
	}
	add(nil)
	add(nil)
	_ = b.callAs("k", func(*Tx) error { return schemas.Bad("not valid") })
	expect.Equal(t, held(), 2, "after a bad record")
	add(schemas.Bad("too large"))
	expect.Equal(t, held(), 0, "new memory after an undone use")
}

// writing returns a callback that only writes.
func writing(f func(tx *Tx)) func(tx *Tx) error {
	return func(tx *Tx) error { f(tx); return nil }
}

func TestTimerName_SortsByTimeThenOwner(t *testing.T) {
	names := [][]byte{
		timerName(-5, "b", nil), timerName(0, "a", []byte("x")), timerName(0, "b", nil), timerName(7, "a", nil), timerName(1<<40, "a", nil),
	}
	expect.True(t, slices.IsSortedFunc(names, bytes.Compare), "order of %q", names)
	got, err := parseTimer(timerName(-5, "user:1", []byte("a\x00b")))
	if want := (timer{micros: -5, owner: "user:1", name: []byte("a\x00b")}); err != nil || got.micros != want.micros || got.owner != want.owner || !bytes.Equal(got.name, want.name) {
		t.Errorf("parsed %+v, %v; want %+v", got, err, want)
	}
	for _, cut := range []string{"", "t", "t1234567", "t12345678owner"} {
		expect.Fails(t, expect.ErrorOf(parseTimer([]byte(cut))), "parse %q", cut)
	}
	expect.Equal(t, microsUp(time.Unix(0, 1001)), 2, "µs of 1001 ns, rounded up")
}
