package generator

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// fakePools is a fake of a partition with one user, and of the topic served.
type fakePools struct {
	mu       sync.Mutex
	rows     memrows.Table
	applied  int64 // offset in served
	end      int64 // end offset of served
	endReads int   // number of reads of end
	endErr   error
	session  uint64 // 0: this process does not own the partition
	since    time.Time
	changed  chan struct{}
}

func newFakePools(pins int) *fakePools { return newFakePoolsOf("editors", pins) }

// newFakePoolsOf returns a fakePools with pins of a source.
func newFakePoolsOf(source schemas.Source, pins int) *fakePools {
	d := &fakePools{rows: memrows.Table{}, applied: -1, session: 1, changed: make(chan struct{})}
	for n := range pins {
		poolstest.Deliver(d.rows, source, poolstest.Delivered{
			Pin: poolstest.PinID(n), Version: 1, PoolScore: schemas.PoolScore(-n), PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:a"}},
		})
	}
	return d
}

func (d *fakePools) Read(_ context.Context, owner string, f func(rows.Snapshot) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == 0 {
		return &rows.NotOwnerError{Group: topics.Pools, Owner: owner, Partition: 3}
	}
	return f(snapshot{Table: maps.Clone(d.rows), applied: d.applied, session: d.session, since: d.since})
}

func (d *fakePools) Changed(string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *fakePools) End(_ context.Context, topic string, partition int32) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if topic != topics.Served || partition != 3 {
		return 0, errors.New("unexpected topic or partition")
	}
	d.endReads++
	return d.end, d.endErr
}

// change modifies the rows, as a commit would.
func (d *fakePools) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.changed)
	d.changed = make(chan struct{})
}

// markSeen marks pins as shown long ago.
func (d *fakePools) markSeen(pins ...schemas.PinID) {
	for _, pin := range pins {
		d.rows[string(rows.Name(layout.KindSeen, pin))] = layout.AppendSeen(nil, layout.Seen{Position: 1})
	}
}

// apply applies a Served at the end of the log.
func (d *fakePools) apply(t *testing.T, s *schemas.Served) {
	d.change(func() {
		st := must.Get(layout.ReadState(d.rows))(t)
		added, _ := st.Show(s, map[schemas.PinID]bool{})
		for e := range added.All() {
			d.rows[string(rows.Name(layout.KindSeen, e.Pin))] = layout.AppendSeen(nil, layout.Seen{Position: e.Position})
		}
		poolstest.SetState(d.rows, st)
		d.applied, d.end = d.end, d.end+1
	})
}

type snapshot struct {
	memrows.Table
	applied int64
	session uint64
	since   time.Time
}

func (s snapshot) Applied(string) int64 { return s.applied }

func (s snapshot) Session() uint64 { return s.session }

func (s snapshot) Since() time.Time { return s.since }

func (s snapshot) Partition() int32 { return 3 }

func generatorOf(t *testing.T, d *fakePools) *Generator {
	t.Helper()
	return generatorWith(t, DefaultConfig(), Deps{Rows: d})
}

// generatorWith returns a generator that reads a fakePools.
func generatorWith(t *testing.T, cfg Config, deps Deps) *Generator {
	t.Helper()
	deps.Streams, deps.End = &topics.Streams{}, deps.Rows.(*fakePools)
	if deps.Deleted == nil {
		deps.Deleted = deletedtest.Of()
	}
	g := must.Get(New(layout.DefaultConfig(), cfg, deps))(t)
	t.Cleanup(g.Close)
	return g
}

// changeHome changes the feed home.
func changeHome(feeds rules.Feeds, change func(*rules.Feed)) {
	home := feeds[rules.Home]
	change(&home)
	feeds[rules.Home] = home
}

// expectPins compares the pins of items.
func expectPins(t *testing.T, items []schemas.ServedItem, want ...schemas.PinID) {
	t.Helper()
	expect.NoDiff(t, pinsOf(items), want, "items")
}

func pinsOf(items []schemas.ServedItem) []schemas.PinID {
	return convert.All(items, func(it schemas.ServedItem) schemas.PinID { return it.Pin })
}

func request(served string) schemas.ChunkRequest {
	return schemas.ChunkRequest{Served: served, User: poolstest.Owner, Feed: "plain", Limit: 2}
}

// visit requests a chunk and fails if there is none.
func visit(t *testing.T, g *Generator, served string) *schemas.Chunk {
	t.Helper()
	return must.Get(g.Chunk(t.Context(), request(served)))(t)
}

// waitingChunk is a chunk that was requested.
type waitingChunk struct {
	done  chan struct{} // closed after the other fields are written
	chunk *schemas.Chunk
	err   error
}

// startChunk requests a chunk without waiting for it. It must be called in a synctest bubble.
func startChunk(ctx context.Context, g *Generator, served string) *waitingChunk {
	w := &waitingChunk{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.chunk, w.err = g.Chunk(ctx, request(served))
	}()
	return w
}

func (w *waitingChunk) expect(t *testing.T, when string, want bool) {
	t.Helper()
	synctest.Wait()
	select {
	case <-w.done:
		if w.err != nil || !want {
			t.Fatalf("%s: Chunk returned, with error %v", when, w.err)
		}
	default:
		if want {
			t.Fatalf("%s: Chunk did not return", when)
		}
	}
}

func TestChunk_TakesBest(t *testing.T) {
	g := generatorOf(t, newFakePools(3))
	c := visit(t, g, "v1")
	expectPins(t, c.Served.Items, "pin:0", "pin:1")
	want := schemas.Served{ID: "v1", User: poolstest.Owner, Feed: "plain", Items: c.Served.Items,
		Memory: schemas.Memory{Mix: map[string]float64{"editors": 1.99}}}
	expect.NoDiff(t, c.Served, want, "served")
}

func TestChunk_WaitsUntilPreviousVisitIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		g := generatorOf(t, d)
		first := visit(t, g, "v1")
		next := startChunk(t.Context(), g, "v2")
		next.expect(t, "published", false)
		g.Settle(poolstest.Owner, "v1", schemas.Acknowledged)
		next.expect(t, "acknowledged", false)
		d.apply(t, &first.Served)
		next.expect(t, "applied", true)
		expectPins(t, next.chunk.Served.Items, "pin:2", "pin:3")
		expect.Equal(t, next.chunk.Head, 2, "head")
	})
}

func TestSettle_FailedVisitReleasesItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generatorOf(t, newFakePools(5))
		visit(t, g, "v1")
		next := startChunk(t.Context(), g, "v2")
		g.Settle(poolstest.Owner, "v0", schemas.Failed)
		next.expect(t, "another visit failed", false)
		g.Settle(poolstest.Owner, "v1", schemas.Failed)
		next.expect(t, "it failed", true)
		expectPins(t, next.chunk.Served.Items, "pin:0", "pin:1")
	})
}

// A Served of unknown outcome can be appended until the delivery timeout of its producer. After that, it can be anywhere
// before the end of the log. Therefore only the log settles it, not the time.
func TestSettle_UnknownOutcomeIsSettledByLog(t *testing.T) {
	for name, arrives := range map[string]bool{"appended": true, "never appended": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakePools(5)
				g := generatorOf(t, d)
				first := visit(t, g, "v1")
				reads := d.endReads // at the assignment of the partition
				g.Settle(poolstest.Owner, "v1", schemas.Unknown)
				next := startChunk(t.Context(), g, "v2")
				time.Sleep(topics.DeliveryTimeout - time.Millisecond)
				d.change(func() {})
				next.expect(t, "it can still be appended", false)
				expect.Equal(t, d.endReads, reads, "reads of the end")
				d.change(func() { d.end = 1 })
				time.Sleep(time.Millisecond)
				next.expect(t, "records before the end are not applied", false)
				time.Sleep(time.Hour)
				next.expect(t, "an hour later", false)
				if arrives {
					d.end = 0
					d.apply(t, &first.Served)
				} else {
					d.change(func() { d.applied = 0 }) // a Served of another user
				}
				next.expect(t, "applied up to the end", true)
				want := []schemas.PinID{"pin:0", "pin:1"}
				if arrives {
					want = []schemas.PinID{"pin:2", "pin:3"}
				}
				expectPins(t, next.chunk.Served.Items, want...)
			})
		})
	}
}

func TestSettle_MissingOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generatorOf(t, newFakePools(5))
		visit(t, g, "v1")
		next := startChunk(t.Context(), g, "v2")
		time.Sleep(publishWithin + topics.DeliveryTimeout - time.Millisecond)
		next.expect(t, "may still be published", false)
		time.Sleep(time.Millisecond)
		next.expect(t, "not in the log", true)
	})
}

func TestSettle_AcknowledgedButDroppedIsSettledByLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		g := generatorOf(t, d)
		visit(t, g, "v1")
		g.Settle(poolstest.Owner, "v1", schemas.Acknowledged)
		d.change(func() { d.applied, d.end = 0, 1 }) // sent to the dead-letter topic
		next := startChunk(t.Context(), g, "v2")
		next.expect(t, "its id can still be applied", false)
		time.Sleep(ackPatience)
		next.expect(t, "the log is applied", true)
	})
}

func TestChunk_CanceledCallKeepsPreviousVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generatorOf(t, newFakePools(5))
		visit(t, g, "v1")
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			expect.Is(t, expect.ErrorOf(g.Chunk(ctx, request("v2"))), context.DeadlineExceeded, "error")
			cancel()
		}
		g.Settle(poolstest.Owner, "v1", schemas.Failed)
		visit(t, g, "v3")
	})
}

func TestHandover_WaitsUntilServedIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		g := generatorOf(t, d)
		d.end = 3
		next := startChunk(t.Context(), g, "v1")
		next.expect(t, "no record is applied", false)
		d.change(func() { d.applied = 1 })
		next.expect(t, "one record is missing", false)
		d.change(func() { d.applied, d.end = 2, 9 })
		next.expect(t, "applied up to the end that was read", true)
		g.Settle(poolstest.Owner, "v1", schemas.Failed)
		visit(t, g, "v2")
		g.Settle(poolstest.Owner, "v2", schemas.Failed)
		expect.Equal(t, d.endReads, 1, "reads of the end")
		d.change(func() { d.session = 2 })
		next = startChunk(t.Context(), g, "v3")
		next.expect(t, "the partition returned", false)
		d.change(func() { d.applied = 8 })
		next.expect(t, "applied again", true)
	})
}

// A visit with a chunk of another process has not published its Served when the partition moves. Its items are shown as new
// only once.
func TestHandover_ItemsOfPreviousOwnerAreNotNewAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		cfg := DefaultConfig()
		cfg.HandoverWait = 800 * time.Millisecond
		previous := generatorWith(t, cfg, Deps{Rows: d})
		first := visit(t, previous, "v1")
		d.change(func() { d.session, d.since = 2, time.Now() })
		reads := d.endReads
		next := startChunk(t.Context(), generatorWith(t, cfg, Deps{Rows: d}), "v2")
		time.Sleep(cfg.HandoverWait - time.Millisecond)
		next.expect(t, "the previous owner's visit may continue", false)
		expect.Equal(t, d.endReads, reads, "reads of the end")
		d.change(func() { d.end = 1 })
		time.Sleep(time.Millisecond)
		next.expect(t, "the previous owner's visit is not applied", false)
		d.end = 0
		d.apply(t, &first.Served)
		next.expect(t, "the previous owner's visit is applied", true)
		expectPins(t, next.chunk.Served.Items, "pin:2", "pin:3")
	})
}

// A generator does not wait for a partition that no other process can have owned: it holds all reservations itself.
func TestHandover_NoWaitWithoutPreviousOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakePools(5)
		cfg := DefaultConfig()
		cfg.HandoverWait = 800 * time.Millisecond
		d.since = time.Now()
		g := generatorWith(t, cfg, Deps{Rows: d})
		time.Sleep(cfg.HandoverWait)
		visit(t, g, "v1")
		d.change(func() { d.session = 2 })
		next := startChunk(t.Context(), g, "v2")
		next.expect(t, "the previous visit is in flight", false)
		g.Settle(poolstest.Owner, "v1", schemas.Failed)
		next.expect(t, "it failed", true)
	})
}

func TestChunk_Errors(t *testing.T) {
	d := newFakePools(5)
	g := generatorOf(t, d)
	bad := func(change func(*schemas.ChunkRequest)) error {
		r := request("v")
		change(&r)
		_, err := g.Chunk(t.Context(), r)
		return err
	}
	expect.Is(t, bad(func(r *schemas.ChunkRequest) { r.Feed = "work" }), schemas.ErrUnknownFeed, "unknown feed")
	for name, change := range map[string]func(*schemas.ChunkRequest){
		"limit 0":   func(r *schemas.ChunkRequest) { r.Limit = 0 },
		"limit 101": func(r *schemas.ChunkRequest) { r.Limit = 101 },
		"served":    func(r *schemas.ChunkRequest) { r.Served = "" },
	} {
		expect.Error(t, bad(change), name[:5], "%s", name)
	}
	d.endErr = errors.New("brokers away")
	expect.Is(t, expect.ErrorOf(g.Chunk(t.Context(), request("v1"))), d.endErr, "error")
	d.endErr, d.session = nil, 0
	expect.Is(t, expect.ErrorOf(g.Chunk(t.Context(), request("v2"))), schemas.ErrNotOwner, "Chunk")
	d.session = 1
	visit(t, g, "v3") // none of these left a reservation
}

func TestChunk_EmptyReservesNothing(t *testing.T) {
	g := generatorOf(t, newFakePools(0))
	for _, id := range []string{"v1", "v2"} {
		expect.Equal(t, len(visit(t, g, id).Served.Items), 0, "items of an empty pool")
	}
}

func TestChunk_DeletedUserGetsNone(t *testing.T) {
	d := newFakePools(5)
	g := generatorWith(t, DefaultConfig(), Deps{Rows: d, Deleted: deletedtest.Of(poolstest.Owner)})
	expect.Equal(t, len(visit(t, g, "v1").Served.Items), 0, "items")
}

func TestReservations_OfUsersWhoNeverReturnAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generatorOf(t, newFakePools(5))
		for _, user := range []schemas.UserID{"user:1", "user:2", "user:3", "user:4", "user:5"} {
			r := request("v-" + string(user))
			r.User = user
			must.Get(g.Chunk(t.Context(), r))(t)
		}
		time.Sleep(publishWithin + topics.DeliveryTimeout)
		for range 10 {
			visit(t, g, "v1")
			g.Settle(poolstest.Owner, "v1", schemas.Failed)
		}
		expect.Equal(t, len(g.reservations.users), 0, "reservations that remain")
	})
}

func TestPool_AndWaiting(t *testing.T) {
	d := newFakePools(130)
	poolstest.Deliver(d.rows, "related", poolstest.Delivered{Pin: poolstest.PinID(0), Version: 1, PoolScore: 5, PinContent: schemas.PinContent{Created: 7, Facets: schemas.Facets{Author: "user:a"}}})
	g := generatorOf(t, d)
	got := must.Get(g.Pool(t.Context(), poolstest.Owner, "related", 10))(t)
	want := &schemas.Pool{Source: "related", Total: 1, Items: []schemas.PoolItem{
		{Pin: "pin:0", PoolScore: 5, Time: 7, Facets: schemas.Facets{Author: "user:a"}},
	}}
	expect.NoDiff(t, got, want, "pool")
	if p, err := g.Pool(t.Context(), poolstest.Owner, "editors", 4); err != nil || p.Total != 130 || len(p.Items) != 4 {
		t.Errorf("got %d of %d, %v, want 4 of 130", len(p.Items), p.Total, err)
	}
	if p, err := g.Pool(t.Context(), poolstest.Owner, "nowhere", 4); err != nil || p.Total != 0 || p.Items == nil {
		t.Errorf("got %+v, %v, want an empty list", p, err)
	}
	expect.Equal(t, must.Get(g.Waiting(t.Context(), poolstest.Owner))(t), MaxWaiting, "waiting")
	few := newFakePools(3)
	poolstest.Deliver(few.rows, "related", poolstest.Delivered{Pin: poolstest.PinID(0), Version: 1, PoolScore: 5, PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:a"}}})
	n := must.Get(generatorOf(t, few).Waiting(t.Context(), poolstest.Owner))(t)
	expect.Equal(t, n, 3, "waiting: a pin in two pools counts once")
}
