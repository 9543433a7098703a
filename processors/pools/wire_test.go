package pools_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// rig runs the group against an embedded broker, with a generator on its rows.
type rig struct {
	*proctest.Wire
	t         *testing.T
	cfg       pools.Config
	member    *proctest.Member
	generator *generator.Generator
	pulled    *generator.Pulled // for later generators; nil: none
}

// deletedUsers returns a separate set for each call, because an erasure adds to it.
func deletedUsers() *deletedtest.Users { return deletedtest.Of("user:deleted") }

// newRig starts the group and a generator, for a parallel test.
func newRig(t *testing.T, cfg pools.Config) *rig { return newRigWith(t, cfg, nil) }

// newRigWith is newRig with an adjusted configuration of package rows.
func newRigWith(t *testing.T, cfg pools.Config, adjust func(*rows.Config)) *rig {
	t.Parallel()
	cfg.MaxFollowees = cmp.Or(cfg.MaxFollowees, pools.DefaultConfig().MaxFollowees)
	r := &rig{Wire: proctest.New(t), t: t, cfg: cfg}
	r.member = r.StartWith("a", adjust, pools.Group(cfg, r.Streams, deletedUsers()))
	r.attach()
	return r
}

// narrow sets the smallest bounds that rows accepts for a record.
func narrow(c *rows.Config) { c.MaxRecordWrites, c.MaxRecordWriteBytes = 1000, 1<<20 }

// attach makes a generator on the member's current rows.
func (r *rig) attach() { r.attachWith(generator.DefaultConfig()) }

func (r *rig) attachWith(cfg generator.Config) {
	log := must.Get(topics.NewLog(r.Kafka))(r.t)
	r.t.Cleanup(log.Close)
	known := make(chan struct{})
	close(known) // no pin is hot
	r.generator = must.Get(generator.New(r.cfg, cfg, generator.Deps{
		Rows: r.member.View(topics.Pools), End: generator.DataEnd{Log: log}, Streams: r.Streams, Deleted: deletedUsers(),
		Hot: generator.NewHot(known), Pulled: r.pulled,
	}))(r.t)
	r.t.Cleanup(r.generator.Close)
}

// crash kills the member and starts it again.
func (r *rig) crash() {
	r.member.Kill()
	r.member.Restart()
	r.attach()
}

func (r *rig) deliver(source schemas.Source, user schemas.UserID, weight float32, pins ...schemas.DeliveredPin) {
	d := &schemas.Delivery{Source: source, Pins: pins, Users: []schemas.UserID{user}, Weights: []float32{weight}}
	partition := topics.Partition(string(user), r.Kafka.Partitions)
	proctest.PublishTo(r.Wire, r.Streams.Deliveries, partition, "user:x", time.Time{}, d)
}

func (r *rig) edge(user schemas.UserID, kind schemas.EdgeKind, other schemas.ID, live bool) {
	proctest.Publish(r.Wire, r.Streams.Edges, string(user),
		&schemas.Edge{User: user, Other: other, Kind: kind, Live: live, Time: 1})
}

// pool retries until this process owns the user's partition.
func (r *rig) pool(user schemas.UserID, source schemas.Source) *schemas.Pool {
	r.t.Helper()
	var p *schemas.Pool
	r.Eventually("a pool of "+string(user), func() bool {
		var err error
		p, err = r.generator.Pool(r.t.Context(), user, source, 1000)
		if !errors.Is(err, schemas.ErrNotOwner) {
			must.OK(r.t, err)
		}
		return err == nil
	})
	return p
}

type place struct {
	Pin   schemas.PinID
	Score schemas.PoolScore
}

func placesOf(p *schemas.Pool) []place {
	return convert.All(p.Items, func(it schemas.PoolItem) place { return place{it.Pin, it.PoolScore} })
}

func pin(n int, at schemas.Micros, author schemas.UserID) schemas.DeliveredPin {
	return schemas.DeliveredPin{
		Pin: schemas.PinID(fmt.Sprintf("pin:%03d", n)), Version: schemas.Version(at), PinContent: schemas.PinContent{Created: at, Facets: schemas.Facets{Author: author}},
		BaseScore: schemas.BaseScore(at),
	}
}

// visit makes a complete visit: chunk, served (sent repeat times), outcome. It returns the pins.
func (r *rig) visit(user schemas.UserID, id string, repeat int) []schemas.PinID {
	r.t.Helper()
	var chunk *schemas.Chunk
	r.Eventually("a chunk for "+string(user), func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), proctest.Patience)
		defer cancel()
		var err error
		chunk, err = r.generator.Chunk(ctx, schemas.ChunkRequest{
			Served: id, User: user, Feed: "home", Limit: 7, Time: schemas.MicrosOf(time.Now()),
		})
		if !errors.Is(err, schemas.ErrNotOwner) {
			must.OK(r.t, err)
		}
		return err == nil
	})
	pins := convert.All(chunk.Served.Items, func(it schemas.ServedItem) schemas.PinID { return it.Pin })
	if len(pins) == 0 {
		return nil
	}
	chunk.Served.Logged = &schemas.LoggedVisit{Policy: schemas.PolicyDeterministic}
	for _, p := range pins {
		chunk.Served.Logged.Items = append(chunk.Served.Logged.Items, schemas.LoggedItem{Pin: p, Propensity: 1})
	}
	for range repeat {
		proctest.Publish(r.Wire, r.Streams.Served, string(user), &chunk.Served)
	}
	r.generator.Settle(user, id, schemas.Acknowledged)
	return pins
}

// Visits follow one another immediately, each Served is sent twice, and the process is killed in between. No pin is shown
// twice, none is missing, and the materialized feed, the impressions and the log of visits contain each shown pin once.
func TestVisits_ShowEachPinOnceThroughKills(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	const user, pins = schemas.UserID("user:me"), 60
	r.edge(user, schemas.FollowEdge, "user:a", true)
	r.edge(user, schemas.FollowEdge, "interest:x", true)
	for n := range pins {
		p := pin(n, schemas.Micros(1000+n), "user:a")
		p.Interests = []schemas.InterestID{"interest:x"}
		r.deliver(schemas.Following, user, 1, p)
		r.deliver(schemas.FromInterest, user, 1, p) // the same pins from two sources
	}
	r.WaitIdle()
	shown := map[schemas.PinID]bool{}
	var order []schemas.PinID // as materialized, the oldest first
	for v := 0; ; v++ {
		got := r.visit(user, fmt.Sprintf("visit-%d", v), 2)
		for _, p := range got {
			expect.False(t, shown[p], "visit %d: %s repeated", v, p)
			shown[p] = true
		}
		slices.Reverse(got) // the first shown item is on top of the materialized feed
		order = append(order, got...)
		if len(got) == 0 {
			break
		}
		if v%3 == 1 {
			r.crash()
		}
	}
	expect.Equal(t, len(shown), pins, "pins shown")
	r.WaitIdle()
	var materialized []schemas.PinID
	for _, rec := range proctest.Drain(r.Wire, r.Streams.FeedEntries) {
		for e := range rec.Value.All() {
			if e.Position != int64(len(materialized)+1) || rec.Key != string(user) {
				t.Errorf("entry %d is %+v", len(materialized), e)
			}
			materialized = append(materialized, e.Pin)
		}
	}
	expect.NoDiff(t, materialized, order, "materialized feed (-shown +materialized)")
	impressions := map[schemas.PinID]int{}
	for _, i := range proctest.Drain(r.Wire, r.Streams.Impressions) {
		for _, shown := range i.Value.Pins {
			impressions[shown.Pin]++
			expect.Equal(t, i.Partition, topics.Partition(string(shown.Pin), r.Kafka.Partitions), "partition of %s", shown.Pin)
		}
	}
	expect.Equal(t, [2]int{len(impressions), len(order)}, [2]int{pins, pins}, "impressions and pins")
	for p, n := range impressions {
		expect.Equal(t, n, 1, "%s: impressions", p)
	}
	r.checkRecent(user, order)
	logged := []schemas.PinID{}
	for i, rec := range proctest.Drain(r.Wire, r.Streams.VisitLog) {
		v := rec.Value
		if rec.Key != string(user) || v.User != user || v.ID != fmt.Sprint("visit-", i) || v.Feed != "home" || v.Time == 0 {
			t.Errorf("visit %d is logged as %+v", i, v)
		}
		for _, it := range slices.Backward(v.Items) {
			logged = append(logged, it.Pin)
		}
	}
	expect.NoDiff(t, logged, order, "log of visits (-shown +logged)")
}

// A partition moves from one process to another and back while a user visits. Each process has its own generator. The new
// owner applies served to its end before it composes a chunk, and so omits the pins that the previous owner showed.
func TestVisits_ContinueWhenPartitionMoves(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	const user, pins = schemas.UserID("user:mover"), 42
	for n := range pins {
		r.deliver(schemas.Related, user, 1, pin(n, schemas.Micros(1000+n), "user:a"))
	}
	r.WaitIdle()
	shown := map[schemas.PinID]bool{}
	for v, name := range []string{"b", "a", "b", "a", "b", "a"} {
		for _, p := range r.visit(user, fmt.Sprintf("move-%d", v), 1) {
			expect.False(t, shown[p], "visit %d: %s repeated", v, p)
			shown[p] = true
		}
		r.member.Stop() // the Served is in the log, but may not be applied
		r.member = r.Start(name, pools.Group(r.cfg, r.Streams, deletedUsers()))
		r.attach()
	}
	expect.Equal(t, len(shown), pins, "pins shown")
}

// recalled returns the materialized entries that a chunk recalls.
func recalled(t *testing.T, c *schemas.Chunk) []schemas.FeedEntry {
	t.Helper()
	return must.Get(c.RecentEntries(t.Context()))(t)
}

// checkRecent requests a chunk without new items, and expects the shown pins, newest first.
func (r *rig) checkRecent(user schemas.UserID, order []schemas.PinID) {
	chunk := must.Get(r.generator.Chunk(r.t.Context(), schemas.ChunkRequest{Served: "none", User: user, Feed: "home", Limit: 1}))(r.t)
	var recent []schemas.PinID
	for _, e := range recalled(r.t, chunk) {
		recent = append(recent, e.Pin)
	}
	slices.Reverse(recent)
	expect.NoDiff(r.t, recent, order, "recent entries")
	expect.Equal(r.t, chunk.Head, int64(len(order)), "head")
}

func TestPools(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 10, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	for name, run := range map[string]func(*testing.T, *rig){
		"offers have separate, bounded sources":        testOffers,
		"bad records go to the dead letters":           testDeadLetters,
		"affinities change the order of home":          testAffinities,
		"deleted users get no rows":                    testDeletedUser,
		"the newest 100 entries are kept":              testMaterialized,
		"a delivery waits for its edge":                testEdgeLater,
		"a late repeat of a visit changes nothing":     testRepeat,
		"the oldest seen pins are removed and refused": testForget,
		"deferred candidates are shown or expire":      testDeferred,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each test has its own users and mostly waits
			run(t, r)
		})
	}
}

func testOffers(t *testing.T, r *rig) {
	const user = schemas.UserID("user:offered")
	offer := func(id string, source schemas.Source, at time.Time, candidates ...schemas.Candidate) {
		proctest.Publish(r.Wire, r.Streams.Candidates, string(user),
			&schemas.Offer{ID: id, Time: schemas.MicrosOf(at), User: user, Source: source, Candidates: candidates})
	}
	now := time.Now()
	candidate := func(pin schemas.PinID, author schemas.UserID, score schemas.PoolScore) schemas.Candidate {
		return schemas.Candidate{Pin: pin, Facets: schemas.Facets{Author: author}, PoolScore: score}
	}
	r.edge(user, schemas.BlockEdge, "user:blocked", true)
	offer("o1", "editors", now, candidate("pin:1", "user:z", 1), candidate("pin:2", "user:blocked", 9), candidate("pin:3", "user:z", 2))
	offer("o2", "editors", now.Add(-time.Minute), candidate("pin:1", "user:blocked", 5)) // older
	offer("o3", "partners", now, candidate("pin:1", "user:z", 7))
	offer("o4", "third", now, candidate("pin:1", "user:z", 7))
	offer("o5", "fourth", now, candidate("pin:1", "user:z", 7)) // exceeds the cap of sources
	offer("o6", "editors", now, candidate("pin:4", "user:z", 3))
	r.WaitIdle()
	for source, want := range map[schemas.Source][]place{
		"editors": {{"pin:1", 5}, {"pin:4", 3}, {"pin:3", 2}}, "partners": {{"pin:1", 7}}, "third": {{"pin:1", 7}}, "fourth": {},
	} {
		expect.NoDiff(t, placesOf(r.pool(user, source)), want, "%s", string(source))
	}
	expect.Equal(t, must.Get(r.generator.Waiting(t.Context(), user))(t), 3, "waiting candidates")
}

// After MaxRecentItems was lowered, the next visit deletes the other rows.
func TestRecentEntries_LoweredDeletesOldRows(t *testing.T) {
	const user = schemas.UserID("user:1")
	r := newRig(t, pools.Config{MaxCandidates: 10, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	for n := 0; n < 90; n += 30 {
		r.showPins(user, n, n+30)
	}
	r.WaitIdle()
	expect.Equal(t, r.count(user, 'e'), 3, "materialized rows, one per visit")
	r.member.Kill()
	r.cfg.MaxRecentItems = 10
	r.member = r.Start("b", pools.Group(r.cfg, r.Streams, deletedUsers()))
	r.showPins(user, 90, 95)
	r.WaitIdle()
	expect.Equal(t, r.count(user, 'e'), 2, "materialized rows: those of the last two visits")
}

func testDeadLetters(t *testing.T, r *rig) {
	const user = schemas.UserID("user:bad")
	before := len(proctest.Drain(r.Wire, r.Streams.DeadLetters))
	r.PublishBytes(topics.Deliveries, string(user), []byte{0, 0, 0, 0})
	r.deliver("unknown", user, 1, pin(1, 1, "user:a"))
	r.deliver(schemas.Related, user, -1, pin(1, 1, "user:a"))
	r.edge(user, "hugs", "user:a", true)
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{ID: "s", User: "user:other"})
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{User: user})
	proctest.Publish(r.Wire, r.Streams.Candidates, string(user), &schemas.Offer{ID: "o", User: user, Source: schemas.Following})
	proctest.Publish(r.Wire, r.Streams.Affinities, string(user), &schemas.Affinities{User: "user:other"})
	r.deliver(schemas.Related, user, 1, pin(1, 1, "user:a"))
	arrival := time.Now().Truncate(time.Millisecond)
	latest := schemas.MicrosOf(arrival.Add(schemas.MaxAhead))
	for pin, at := range map[schemas.PinID]schemas.Micros{"pin:latest": latest, "pin:of-the-future": latest + 1} {
		one := schemas.Candidate{Pin: pin, Facets: schemas.Facets{Author: "user:a"}, PoolScore: 1}
		proctest.PublishAt(r.Wire, r.Streams.Candidates, arrival, string(user),
			&schemas.Offer{ID: string(pin), Time: at, User: user, Source: "editors", Candidates: []schemas.Candidate{one}})
	}
	r.WaitIdle()
	expect.Equal(t, len(proctest.Drain(r.Wire, r.Streams.DeadLetters))-before, 9, "dead letters")
	expect.Equal(t, len(r.pool(user, schemas.Related).Items), 1, "candidates: only the valid one")
	expect.NoDiff(t, placesOf(r.pool(user, "editors")), []place{{"pin:latest", 1}}, "offered")
}

func testAffinities(t *testing.T, r *rig) {
	const user = schemas.UserID("user:fond")
	for n := range 8 {
		r.deliver(schemas.Related, user, 1, pin(n, 1, schemas.UserID(fmt.Sprintf("user:author-%d", n))))
	}
	proctest.Publish(r.Wire, r.Streams.Affinities, string(user),
		&schemas.Affinities{User: user, Top: []schemas.Affinity{{Facet: "user:author-5", Value: 3}}})
	r.WaitIdle()
	expect.Equal(t, r.visit(user, "fond", 1)[0], "pin:005", "first pin")
}

func testDeletedUser(t *testing.T, r *rig) {
	const user = schemas.UserID("user:deleted")
	r.edge(user, schemas.FollowEdge, "user:a", true)
	r.deliver(schemas.Related, user, 1, pin(1, 1, "user:a"))
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{ID: "s", User: user, Items: []schemas.ServedItem{{Pin: "pin:1"}}})
	r.WaitIdle()
	expect.Empty(t, r.Rows(topics.Pools, string(user)), "rows")
}

// showPins sends a Served of pins that are created and shown at the time of their number.
func (r *rig) showPins(user schemas.UserID, from, to int) {
	s := &schemas.Served{ID: fmt.Sprintf("%s-%d", user, from), User: user, Time: schemas.Micros(from)}
	for n := from; n < to; n++ {
		s.Items = append(s.Items, schemas.ServedItem{Pin: pin(n, 0, "").Pin, Created: schemas.Micros(from), Source: schemas.Related})
	}
	proctest.Publish(r.Wire, r.Streams.Served, string(user), s)
}

func testMaterialized(t *testing.T, r *rig) {
	const user = schemas.UserID("user:old")
	r.showPins(user, 0, 90)
	r.showPins(user, 50, 140) // 40 of them again
	r.WaitIdle()
	r.pool(user, schemas.Related)
	chunk := must.Get(r.generator.Chunk(t.Context(), schemas.ChunkRequest{Served: "x", User: user, Feed: "plain", Limit: 1}))(t)
	recent := recalled(t, chunk)
	if n := len(recent); n != 100 || recent[0].Position != 140 || recent[99].Position != 41 || chunk.Head != 140 {
		t.Errorf("%d entries, head %d", n, chunk.Head)
	}
	expect.Equal(t, r.count(user, 'e'), 2, "materialized rows")
	r.showPins(user, 200, 250) // the newest 100 are those of the last two
	r.WaitIdle()
	expect.Equal(t, r.count(user, 'e'), 2, "materialized rows: that of the first visit is deleted")
}

// A generator with a clock that is a day fast shows a pin. The stored times are ahead of the arrival by no more than
// MaxAhead.
func TestServe_LimitsTimesOfFastClock(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 10, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	const user = schemas.UserID("user:early")
	ahead := schemas.MicrosOf(time.Now().Add(24 * time.Hour))
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{
		ID: "fast", User: user, Time: ahead, Items: []schemas.ServedItem{{Pin: "pin:1", Source: schemas.Related}},
		Memory: schemas.Memory{Began: ahead, Visited: ahead, Deferred: []schemas.Deferred{{Pin: "pin:2", Since: ahead}}},
	})
	r.WaitIdle()
	latest := schemas.MicrosOf(time.Now().Add(schemas.MaxAhead))
	chunk, err := r.generator.Chunk(t.Context(), schemas.ChunkRequest{Served: "x", User: user, Feed: "plain", Limit: 1})
	must.OK(t, err)
	if recent := recalled(t, chunk); len(recent) != 1 || recent[0].Time > latest {
		t.Errorf("got %+v, want an entry no later than %d", recent, latest)
	}
	var st layout.State
	for _, row := range r.Rows(topics.Pools, string(user)) {
		if string(row.Name) != string(layout.KindState) {
			continue
		}
		st = must.Get(packed.Decode[layout.State](row.Value))(t)
	}
	if st.Began > latest || st.Visited > latest || len(st.Deferred) != 1 || st.Deferred[0].Since > latest || st.Visited == 0 {
		t.Errorf("got %+v, want no time after %d", st, latest)
	}
}

func testDeferred(t *testing.T, r *rig) {
	const user = schemas.UserID("user:later")
	for n := range 4 {
		r.deliver(schemas.Related, user, 1, pin(n, schemas.Micros(1000+n), "user:a"))
		r.deliver(schemas.Related, user, 2, pin(n, schemas.Micros(1000+n), "user:a")) // a second row
	}
	r.WaitIdle()
	show := func(id string, pin schemas.PinID, m schemas.Memory, expired ...schemas.PinID) {
		proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{
			ID: id, User: user, Items: []schemas.ServedItem{{Pin: pin}}, Memory: m, Expired: expired,
		})
	}
	later := []schemas.Deferred{{Pin: "pin:001", Since: 1}, {Pin: "pin:002", Since: 1}}
	show("one", "pin:000", schemas.Memory{Deferred: later})
	show("two", "pin:other", schemas.Memory{Deferred: later})
	show("three", "pin:001", schemas.Memory{}, "pin:002")
	r.WaitIdle()
	if p := r.pool(user, schemas.Related); p.Total != 1 || p.Items[0].Pin != "pin:003" {
		t.Errorf("pool %+v, want pin:003", p)
	}
	status := r.member.Status(topics.Pools)
	expect.Equal(t, [2]int64{status.Effects["deferred"], status.Effects["deferred_shown"]}, [2]int64{2, 1}, "deferred, and shown of these")
	expect.Equal(t, status.Dropped["deferred"], 1, "deferred pins dropped because they have expired")
}

// A pulled pin that was deferred for too long is not pulled again, with or without rows, until it is delivered.
func TestServe_ExpiredPulledPinsAreNotPulledAgain(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 10, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	r.pulled = new(generator.Pulled)
	r.attach()
	for n := range 3 {
		p := pin(n, schemas.Micros(1000+n), "user:star")
		r.pulled.Change("", nil, &schemas.PulledPin{Followee: "user:star", Slot: int32(n), DeliveredPin: p})
	}
	r.edge(reader, schemas.FollowEdge, "user:star", true)
	r.deliver(schemas.Following, reader, 1, pin(2, 1002, "user:star")) // also has a row
	show := func(id string, m schemas.Memory, expired ...schemas.PinID) {
		t.Helper()
		proctest.Publish(r.Wire, r.Streams.Served, string(reader), &schemas.Served{
			ID: id, User: reader, Items: []schemas.ServedItem{{Pin: schemas.PinID("pin:" + id)}}, Memory: m, Expired: expired,
		})
		r.WaitIdle()
	}
	why := func(pin schemas.PinID) string {
		t.Helper()
		req := schemas.WhyRequest{User: reader, Pin: pin, Feed: "plain", Limit: 10, Time: schemas.MicrosOf(time.Now())}
		w := must.Get(r.generator.Why(t.Context(), req))(t)
		return fmt.Sprint(w.Fate, " ", w.Reason)
	}
	show("one", schemas.Memory{Deferred: []schemas.Deferred{{Pin: "pin:001", Since: 1}, {Pin: "pin:002", Since: 1}}})
	all := []place{{"pin:002", 1002}, {"pin:001", 1001}, {"pin:000", 1000}}
	expect.NoDiff(t, placesOf(r.pool(reader, schemas.Following)), all, "before")
	show("two", schemas.Memory{}, "pin:001", "pin:002")
	expect.NoDiff(t, placesOf(r.pool(reader, schemas.Following)), all[2:], "after the expiry")
	if items := r.requestChunk("next", false).Served.Items; len(items) != 1 || items[0].Pin != "pin:000" {
		t.Errorf("the next chunk has %+v, want pin:000", items)
	}
	for _, pin := range []schemas.PinID{"pin:001", "pin:002"} {
		expect.Equal(t, why(pin), "out deferral_expired", "%s", pin)
	}
	r.deliver(schemas.Related, reader, 1, pin(1, 1001, "user:star"))
	r.WaitIdle()
	expect.Equal(t, r.pool(reader, schemas.Related).Total, 1, "candidates after a new delivery")
	expect.Equal(t, why("pin:001"), "next ", "after a new delivery")
	expect.Equal(t, r.count(reader, 'u'), 1, "rows of expired pins")
	proctest.Publish(r.Wire, r.Streams.Erasures, string(reader), &schemas.Erasure{User: reader, Step: schemas.EraseUser, Time: 5})
	r.WaitIdle()
	expect.Empty(t, r.Rows(topics.Pools, string(reader)), "rows after the erasure")
}

func testRepeat(t *testing.T, r *rig) {
	const user = schemas.UserID("user:twice")
	served := func(id string, shown float64) *schemas.Served {
		return &schemas.Served{ID: id, User: user, Items: []schemas.ServedItem{{Pin: schemas.PinID("pin:" + id)}},
			Memory: schemas.Memory{Mix: map[string]float64{"related": shown}}}
	}
	proctest.Publish(r.Wire, r.Streams.Served, string(user), served("one", 1), served("two", 2))
	r.WaitIdle()
	before := r.Rows(topics.Pools, string(user))
	proctest.Publish(r.Wire, r.Streams.Served, string(user), served("one", 1))
	r.WaitIdle()
	expect.NoDiff(t, r.Rows(topics.Pools, string(user)), before, "rows before and after")
	expect.AtLeast(t, len(before), 1, "rows before")
}

func testEdgeLater(t *testing.T, r *rig) {
	const user = schemas.UserID("user:early")
	r.deliver(schemas.Following, user, 1, pin(1, 1, "user:a"))
	r.WaitIdle()
	expect.Equal(t, r.pool(user, schemas.Following).Total, 0, "candidates without an edge")
	r.edge(user, schemas.FollowEdge, "user:a", true)
	r.WaitIdle()
	expect.Equal(t, r.pool(user, schemas.Following).Total, 1, "candidates")
}

// 1100 pins are shown, and the newest 1000 stay seen. Pins created before the oldest of these was shown are refused.
func testForget(t *testing.T, r *rig) {
	const user = schemas.UserID("user:long")
	for n := 0; n < 1100; n += 100 {
		r.showPins(user, n, n+100)
	}
	r.showPins(user, 1100, 1130) // removes a part of the oldest visit
	r.WaitIdle()
	for _, n := range []int{50, 129, 130, 1129, 2000} {
		r.deliver(schemas.Related, user, 1, pin(n, schemas.Micros(n), "user:a"))
	}
	r.deliver(schemas.Related, user, 1, pin(2001, 130, "user:a")) // as old as the oldest seen pin
	r.WaitIdle()
	want := []place{{"pin:2000", 2000}, {"pin:2001", 130}}
	expect.NoDiff(t, placesOf(r.pool(user, schemas.Related)), want, "pool after seen pins were removed")
	for kind, want := range map[byte]int{'s': 1000, 'i': 11} { // pins, and visits
		expect.Equal(t, r.count(user, kind), want, "rows of kind %q", kind)
	}
}

// count counts a user's rows of a kind.
func (r *rig) count(user schemas.UserID, kind byte) int {
	return len(r.RowsOfKind(topics.Pools, string(user), kind))
}
