package feed

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

const ms = time.Millisecond

// stocked returns a rig whose materialized feed is 10 … 1, with three new items on top. The generator remembers the newest
// four materialized items.
func stocked(t testing.TB) *rig {
	r := newRig(t, nil)
	r.store.follow("user:friend", true)
	r.store.materialize(entriesDown(10, 1)...)
	r.gen.chunk = schemas.Chunk{Head: 10, Recent: entriesDown(10, 7)}
	r.gen.chunk.Served.Items = []schemas.ServedItem{item("a"), item("b"), item("c")}
	return r
}

// The remembered entries are read once, and only if the store lacks an entry.
func TestVisit_RecallsEntriesMissingFromStore(t *testing.T) {
	for name, c := range map[string]struct {
		lacks   []int64
		err     error
		want    string
		recalls int
	}{
		"nothing":           {nil, nil, "*a *b *c f10 f9 f8", 0},
		"two":               {[]int64{10, 8}, nil, "*a *b *c f10 f9 f8", 1},
		"one, recall fails": {[]int64{9}, errFake, "*a *b *c f10", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, recalls := stocked(t), 0
				r.gen.chunk.Recent = nil
				r.gen.chunk.ReadRecent = func(context.Context) ([]schemas.FeedEntry, error) {
					recalls++
					return entriesDown(10, 7), c.err
				}
				for _, position := range c.lacks {
					delete(r.store.entries, position)
				}
				page, err := r.Visit(t.Context(), viewer, "home", 6)
				if got := names(page.Items); err != nil || got != c.want || recalls != c.recalls {
					t.Errorf("got %q after %d recalls, %v, want %q after %d", got, recalls, err, c.want, c.recalls)
				}
			})
		})
	}
}

func TestVisit(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    int
		setup    func(r *rig)
		want     string
		below    int64 // of the cursor; -1: none
		degraded string
		settled  schemas.Outcome
		within   time.Duration
	}{
		{name: "new items above materialized ones", limit: 6, want: "*a *b *c f10 f9 f8", below: 8, settled: schemas.Acknowledged},
		{name: "the whole feed", limit: 100, want: "*a *b *c f10 f9 f8 f7 f6 f5 f4 f3 f2 f1", below: -1,
			settled: schemas.Acknowledged},
		{name: "nothing new", limit: 2, setup: func(r *rig) { r.gen.chunk.Served.Items = nil }, want: "f10 f9", below: 9},
		{name: "only new", limit: 3, want: "*a *b *c", below: 11, settled: schemas.Acknowledged},
		{name: "first visit ever", limit: 5, setup: func(r *rig) {
			r.store.entries = nil
			r.gen.chunk.Head, r.gen.chunk.Recent = 0, nil
		}, want: "*a *b *c", below: -1, settled: schemas.Acknowledged},
		{name: "store already has the shown items", limit: 5, setup: func(r *rig) {
			for i, name := range []string{"a", "b", "c"} {
				r.store.materialize(schemas.FeedEntry{User: viewer, Position: int64(11 + i), ServedItem: item(name)})
			}
		}, want: "*a *b *c f10 f9", below: 9, settled: schemas.Acknowledged},
		{name: "store lags, the generator recalls the rest", limit: 8, setup: func(r *rig) {
			for p := int64(7); p <= 10; p++ {
				delete(r.store.entries, p)
			}
		}, want: "*a *b *c f10 f9 f8 f7 f6", below: 6, settled: schemas.Acknowledged},
		{name: "store lags too far", limit: 9, setup: func(r *rig) {
			delete(r.store.entries, 6)
		}, want: "*a *b *c f10 f9 f8 f7", below: 7, degraded: "stale", settled: schemas.Acknowledged, within: 75 * ms},
		{name: "hole not reached", limit: 7, setup: func(r *rig) {
			delete(r.store.entries, 6)
		}, want: "*a *b *c f10 f9 f8 f7", below: 7, settled: schemas.Acknowledged},
		{name: "trimmed", limit: 100, setup: func(r *rig) { r.store.trimmed = 5 },
			want: "*a *b *c f10 f9 f8 f7 f6", below: -1, settled: schemas.Acknowledged},
		{name: "generator degraded", limit: 4, setup: func(r *rig) { r.gen.chunk.Degraded = []string{"affinities"} },
			want: "*a *b *c f10", below: 10, degraded: "affinities", settled: schemas.Acknowledged},

		{name: "generator late", limit: 3, setup: func(r *rig) { r.gen.fault.delay = time.Hour },
			want: "f10 f9 f8", below: 8, degraded: "generator", settled: schemas.Failed, within: 150 * ms},
		{name: "generator failed", limit: 3, setup: func(r *rig) { r.gen.fault.err = errFake },
			want: "f10 f9 f8", below: 8, degraded: "generator", settled: schemas.Failed},
		{name: "generator just in time", limit: 4, setup: func(r *rig) { r.gen.fault.delay = 149 * ms },
			want: "*a *b *c f10", below: 10, settled: schemas.Acknowledged, within: 149 * ms},

		{name: "served late", limit: 3, setup: func(r *rig) { r.log.fault.delay = time.Hour },
			want: "f10 f9 f8", below: 8, degraded: "served", settled: schemas.Unknown, within: 500 * ms},
		{name: "served failed", limit: 3, setup: func(r *rig) { r.log.fault.err, r.log.outcome = errFake, schemas.Failed },
			want: "f10 f9 f8", below: 8, degraded: "served", settled: schemas.Failed},
		{name: "served unknown", limit: 3, setup: func(r *rig) { r.log.fault.err, r.log.outcome = errFake, schemas.Unknown },
			want: "f10 f9 f8", below: 8, degraded: "served", settled: schemas.Unknown},
		{name: "served without an outcome", limit: 3, setup: func(r *rig) { r.log.fault.err = errFake },
			want: "f10 f9 f8", below: 8, degraded: "served", settled: schemas.Unknown},

		{name: "store late", limit: 100, setup: func(r *rig) { r.store.feed.delay = time.Hour },
			want: "*a *b *c f10 f9 f8 f7", below: 7, degraded: "store", settled: schemas.Acknowledged, within: 150 * ms},
		{name: "store failed", limit: 100, setup: func(r *rig) { r.store.feed.err = errFake },
			want: "*a *b *c f10 f9 f8 f7", below: 7, degraded: "store", settled: schemas.Acknowledged},
		{name: "store failed, all remembered", limit: 100, setup: func(r *rig) {
			r.store.feed.err = errFake
			r.gen.chunk.Recent = entriesDown(10, 1)
		}, want: "*a *b *c f10 f9 f8 f7 f6 f5 f4 f3 f2 f1", below: -1, degraded: "store", settled: schemas.Acknowledged},
		{name: "cards late", limit: 100, setup: func(r *rig) { r.store.facts.delay = time.Hour },
			want: "*a *b *c f10 f9 f8 f7", below: 7, degraded: "store", settled: schemas.Acknowledged, within: 150 * ms},

		{name: "generator and store failed", limit: 100, setup: func(r *rig) {
			r.gen.fault.err, r.store.feed.err = errFake, errFake
		}, want: "", below: math.MaxInt64, degraded: "generator store", settled: schemas.Failed},
		{name: "generator failed, cards failed", limit: 100, setup: func(r *rig) {
			r.gen.fault.err, r.store.facts.err = errFake, errFake
		}, want: "", below: 11, degraded: "generator store", settled: schemas.Failed},
		{name: "served and store late", limit: 100, setup: func(r *rig) {
			r.log.fault.delay, r.store.feed.delay = time.Hour, time.Hour
		}, want: "f10 f9 f8 f7", below: 7, degraded: "store served", settled: schemas.Unknown, within: 650 * ms},
		{name: "everything late", limit: 100, setup: func(r *rig) {
			r.gen.fault.delay, r.log.fault.delay, r.store.feed.delay = time.Hour, time.Hour, time.Hour
		}, want: "", below: math.MaxInt64, degraded: "generator store", settled: schemas.Failed, within: 150 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := stocked(t)
				if c.setup != nil {
					c.setup(r)
				}
				start := time.Now()
				page := must.Get(r.Visit(t.Context(), viewer, "home", c.limit))(t)
				expect.Equal(t, time.Since(start), c.within, "took")
				synctest.Wait()
				same(t, "items", names(page.Items), c.want)
				same(t, "cursor", r.below(t, page.Next), c.below)
				same(t, "degraded", strings.Join(page.Degraded, " "), c.degraded)
				r.checkSettled(t, c.settled)
				r.checkFaultsWereHit(t)
			})
		})
	}
}

// A peek has the page and the cursor of the visit after it. It publishes, announces and settles nothing.
func TestPeek_ShowsNextVisitAndChangesNothing(t *testing.T) {
	for name, setup := range map[string]func(*rig){
		"new items":        func(*rig) {},
		"nothing new":      func(r *rig) { r.gen.chunk.Served.Items = nil },
		"generator failed": func(r *rig) { r.gen.fault.err = errFake },
		"generator late":   func(r *rig) { r.gen.fault.delay = time.Hour },
		"store failed":     func(r *rig) { r.store.feed.err = errFake },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := stocked(t)
				setup(r)
				first := must.Get(r.Peek(t.Context(), viewer, "home", 5))(t)
				second := must.Get(r.Peek(t.Context(), viewer, "home", 5))(t)
				synctest.Wait()
				expect.Empty(t, r.log.published, "published visits")
				expect.Empty(t, r.gen.settled, "settled visits")
				visit := must.Get(r.Visit(t.Context(), viewer, "home", 5))(t)
				same(t, "second peek", second, first)
				same(t, "visit", visit, first)
				for i, asked := range r.gen.asked {
					if peek := i < 2; asked.Peek != peek || (asked.Served == "") != peek {
						t.Errorf("request %d: got %+v", i, asked)
					}
				}
			})
		})
	}
}

// Attempts of one visit have different ids with one prefix, so that the outcome of one does not settle another.
func TestVisitOnce_NamesAttemptsByKey(t *testing.T) {
	r := stocked(t)
	for _, key := range []string{"a", "a", strings.Repeat("b", 1000)} {
		must.Get(r.VisitOnce(t.Context(), viewer, "home", 5, key))(t)
	}
	asked := r.gen.asked
	for _, q := range asked {
		if q.Attempts == "" || !strings.HasPrefix(q.Served, q.Attempts) || len(q.Served) > schemas.MaxEventIDBytes {
			t.Errorf("got the id %q with the prefix %q", q.Served, q.Attempts)
		}
	}
	if asked[0].Attempts != asked[1].Attempts || asked[0].Served == asked[1].Served || asked[0].Attempts == asked[2].Attempts {
		t.Errorf("got %+v, want two attempts of one visit, and another visit", asked)
	}
	must.Get(r.Visit(t.Context(), viewer, "home", 5))(t)
	expect.Equal(t, r.gen.asked[3].Attempts, "", "prefix of a visit without a key")
}

// The log may acknowledge after the deadline while the answer still waits for the store. By then another process may
// own the pools and offer the same items to another visit.
func TestVisit_LateAcknowledgementShowsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stocked(t)
		r.cfg.ReadTimeout, r.store.facts.delay = 2*time.Second, 700*ms
		acknowledged := make(chan struct{})
		r.log.fault.hang = acknowledged
		time.AfterFunc(r.cfg.AckTimeout+100*ms, func() { close(acknowledged) })
		page := must.Get(r.Visit(t.Context(), viewer, "home", 3))(t)
		synctest.Wait()
		same(t, "items", names(page.Items), "f10 f9 f8")
		same(t, "degraded", strings.Join(page.Degraded, " "), "served")
		same(t, "settled", r.gen.settled, []settled{{"served-1", schemas.Unknown}})
		expect.Equal(t, r.log.fault.hits.Load(), 1, "publications that hung")
		expect.Equal(t, len(r.log.published), 1, "acknowledged publications")
	})
}

// A process may be paused at any point, for example by SIGSTOP or with its machine, until another owner of the
// partition has offered the same items to another visit. If it was paused before it published, it publishes nothing.
func TestVisit_ShowsNothingNewAfterPause(t *testing.T) {
	const stopped = 2 * time.Second
	for name, c := range map[string]struct {
		stop    func(r *rig, forward func()) // pauses the process by setting its clock forward
		settled schemas.Outcome
	}{
		"with the chunk":           {func(r *rig, forward func()) { r.gen.fault.then = forward }, schemas.Failed},
		"with the acknowledgement": {func(r *rig, forward func()) { r.log.fault.then = forward }, schemas.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			r := stocked(t)
			var ahead atomic.Int64
			r.deps.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			c.stop(r, func() { ahead.Store(int64(stopped)) })
			page := must.Get(r.Visit(t.Context(), viewer, "home", 3))(t)
			if got := names(page.Items); strings.Contains(got, "*") || !slices.Contains(page.Degraded, "served") {
				t.Errorf("items %q, degraded %v, want nothing new", got, page.Degraded)
			}
			same(t, "settled", r.gen.settled, []settled{{"served-1", c.settled}})
			expect.Equal(t, len(r.log.published) == 1, c.settled == schemas.Unknown, "published once")
		})
	}
}

// The monotonic clock stops while a machine is suspended.
func TestHasPassed_UsesWallClock(t *testing.T) {
	r := stocked(t)
	until := time.Now().Add(time.Minute)
	for ahead, want := range map[time.Duration]bool{0: false, time.Hour: true} {
		r.deps.Now = func() time.Time { return time.Now().Round(0).Add(ahead) } // without a monotonic reading
		expect.Equal(t, r.hasPassed(until), want, "%s later: passed", ahead)
	}
}

// checkSettled checks that the generator was notified of the outcome once, or never if it returned no items.
func (r *rig) checkSettled(t *testing.T, want schemas.Outcome) {
	t.Helper()
	var all []settled
	if want != "" {
		all = []settled{{"served-1", want}}
	}
	same(t, "settled", r.gen.settled, all)
	expect.Equal(t, len(r.log.published) == 1, want == schemas.Acknowledged, "published with outcome %q", want)
}

// checkFaultsWereHit fails if an injected fault did not occur. Only the fault of the log may be unused: without a chunk
// nothing is published.
func (r *rig) checkFaultsWereHit(t *testing.T) {
	t.Helper()
	for name, f := range map[string]*fault{"generator": &r.gen.fault, "feed": &r.store.feed, "facts": &r.store.facts} {
		expect.Equal(t, f.delay > 0 || f.err != nil, f.hits.Load() > 0, "%s: a fault is set, and was hit", name)
	}
	chunk := r.gen.fault.delay < time.Second && r.gen.fault.err == nil
	if set := r.log.fault.delay > 0 || r.log.fault.err != nil; chunk && set != (r.log.fault.hits.Load() > 0) {
		t.Errorf("log: fault set %v, hit %d times", set, r.log.fault.hits.Load())
	}
}

func TestVisit_PublishesServedItems(t *testing.T) {
	r := stocked(t)
	r.store.cards["pin:b"] = schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:b", PinContent: schemas.PinContent{Deleted: true}}}
	page := must.Get(r.Visit(t.Context(), viewer, "plain", 4))(t)
	same(t, "items", names(page.Items), "*a *c f10 f9") // a deleted pin is hidden, but still counts as served
	want := schemas.Served{ID: "served-1", User: viewer, Feed: "plain", Time: r.gen.asked[0].Time,
		Items: []schemas.ServedItem{item("a"), item("b"), item("c")}}
	same(t, "published", r.log.published, []schemas.Served{want})
	same(t, "asked", r.gen.asked, []schemas.ChunkRequest{
		{Served: "served-1", User: viewer, Feed: "plain", Limit: 4, Time: want.Time}})
	expect.Between(t, time.Since(want.Time.Time()), 0, time.Minute, "age of the visit")
}

// A chunk that arrives after its deadline is not used. Its items must be released when it arrives.
func TestVisit_SettlesLateChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stocked(t)
		release := make(chan struct{})
		r.gen.fault.hang = release // a generator that ignores its deadline
		page := must.Get(r.Visit(t.Context(), viewer, "home", 2))(t)
		same(t, "items", names(page.Items), "f10 f9")
		synctest.Wait()
		same(t, "settled before the chunk came", r.gen.settled, []settled(nil))
		close(release)
		must.OK(t, r.Close(t.Context()))
		same(t, "settled", r.gen.settled, []settled{{"served-1", schemas.Failed}})
	})
}

func TestVisit_DisconnectedClientPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		r := stocked(t)
		r.gen.fault.delay = 10 * ms
		time.AfterFunc(5*ms, leave)
		must.Get(r.Visit(ctx, viewer, "home", 2))(t)
		synctest.Wait()
		expect.Empty(t, r.log.published, "published items that no client was shown")
		same(t, "settled", r.gen.settled, []settled{{"served-1", schemas.Failed}})
	})
}

// The client disconnects just after its chunk has arrived.
func TestAnswer_DisconnectedClientPublishesNothing(t *testing.T) {
	r := stocked(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	chunk := r.gen.chunk
	chunk.Served.ID = "served-1"
	r.answer(ctx, r.newReader(viewer), &chunk, 5, time.Now().Add(time.Hour))
	r.checkSettled(t, schemas.Failed)
}

// A client that disconnects while the acknowledgement is in flight must not cause an unknown outcome.
func TestVisit_DisconnectDuringPublicationIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		r := stocked(t)
		r.log.fault.delay = 100 * ms
		time.AfterFunc(50*ms, leave)
		must.Get(r.Visit(ctx, viewer, "home", 2))(t)
		same(t, "settled", r.gen.settled, []settled{{"served-1", schemas.Acknowledged}})
	})
}

// Dependencies that hang, with or without regard to deadlines, hold at most MaxCalls goroutines each, and every visit is
// answered.
func TestVisit_BoundsCallsToHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stocked(t)
		r.Service.store = newGate("callee", 3, &r.Service.calls)
		release := make(chan struct{})
		r.store.feed.hang = release
		for range 10 {
			start := time.Now()
			page := must.Get(r.Visit(t.Context(), viewer, "home", 100))(t)
			same(t, "items", names(page.Items), "*a *b *c f10 f9 f8 f7")
			same(t, "took", time.Since(start), 150*ms)
		}
		same(t, "calls in flight", len(r.Service.store.slots), 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect.Is(t, r.Close(ctx), context.DeadlineExceeded, "Close while calls hang")
		close(release)
		must.OK(t, r.Close(t.Context()))
	})
}

func TestUnknownFeed(t *testing.T) {
	r := stocked(t)
	expect.Is(t, expect.ErrorOf(r.Visit(t.Context(), viewer, strings.Repeat("x", 65), 10)), schemas.ErrUnknownFeed, "long name")
	r.gen.fault.err = schemas.ErrUnknownFeed
	expect.Is(t, expect.ErrorOf(r.Visit(t.Context(), viewer, "nope", 10)), schemas.ErrUnknownFeed, "Visit")
	same(t, "settled", r.gen.settled, []settled(nil))
}

func TestBadLimits(t *testing.T) {
	r := stocked(t)
	for _, limit := range []int{-1, 0, 101} {
		_, err := r.Visit(t.Context(), viewer, "home", limit)
		_, err2 := r.Older(t.Context(), viewer, "", limit)
		_, err3 := r.List(t.Context(), "user:1", "", "", limit)
		for _, err := range []error{err, err2, err3} {
			expect.Is(t, err, ErrBadLimit, "limit %d", limit)
		}
	}
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stocked(t)
		expect.Equal(t, must.Get(r.Waiting(t.Context(), viewer))(t), 7, "waiting items")
		r.gen.fault.delay = time.Hour
		expect.Is(t, expect.ErrorOf(r.Waiting(t.Context(), viewer)), context.DeadlineExceeded, "Waiting")
	})
}

func TestNew_RejectsShortKey(t *testing.T) {
	_, err := New(DefaultConfig(), Deps{CursorKey: []byte("short")})
	expect.Error(t, err, "cursor key of 5 bytes: want at least 16", "a short key")
}
