package fanout_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	base     = schemas.Micros(1_700_000_000_000_000)
	halfLife = time.Hour
)

const never = 1_000_000_000 // a threshold that is never exceeded

// relay replaces the pools: it applies deliveries and sends the continuations in them, except for those of the given pins.
func relay(w *proctest.Wire, but ...schemas.PinID) rows.Group {
	return relayUnless(w, func(_ *rows.Tx, d *schemas.Delivery) bool {
		return len(d.Pins) > 0 && slices.Contains(but, d.Pins[0].Pin)
	})
}

// relayUnless is relay, except for the deliveries that are held.
func relayUnless(w *proctest.Wire, held func(*rows.Tx, *schemas.Delivery) bool) rows.Group {
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{rows.Batched(w.Streams.Deliveries, func(tx *rows.Tx, d *schemas.Delivery) error {
			if len(d.Continuation) == 0 || held(tx, d) {
				return nil
			}
			tx.Emit(topics.FanoutLoop, tx.Key(), d.Continuation)
			return nil
		})},
		Outputs: []string{topics.FanoutLoop},
	}
}

func group(w *proctest.Wire, cfg fanout.Config) rows.Group {
	cfg.StepTimeout = cmp.Or(cfg.StepTimeout, time.Hour)
	return fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deletedtest.Of("user:deleted"))
}

// start starts the group and the relay, for a parallel test.
func start(t *testing.T, cfg fanout.Config) (*proctest.Wire, *proctest.Member) {
	t.Parallel()
	w := proctest.New(t)
	return w, w.Start("a", relay(w), group(w, cfg))
}

func follow(id string, at schemas.Micros, actor schemas.UserID, verb schemas.Verb, object schemas.ID) *schemas.FollowEvent {
	return &schemas.FollowEvent{Event: schemas.Event{ID: id, Time: base + at, Actor: actor, Verb: verb, Object: object}}
}

func publish(w *proctest.Wire, events ...*schemas.FollowEvent) {
	for _, e := range events {
		proctest.Publish(w, w.Streams.Follows, string(e.Object), e)
	}
}

// pinOf returns the first version of an author's pin, created at the given time.
func pinOf(author schemas.UserID, n int, at schemas.Micros) schemas.PinVersion {
	return schemas.PinVersion{
		Pin: schemas.PinID(fmt.Sprintf("pin:%d", n)), Version: schemas.Version(base + at), PinContent: schemas.PinContent{Created: base + at, Facets: schemas.Facets{Author: author, Interests: []schemas.InterestID{"interest:x"}}}, Quality: 1,
	}
}

func announce(w *proctest.Wire, followee schemas.Followee, versions ...schemas.PinVersion) {
	for _, v := range versions {
		proctest.Publish(w, w.Streams.Publications, string(followee), &schemas.Publication{Followee: followee, PinVersion: v})
	}
}

// followBy lets users 0 to n-1 follow a followee.
func followBy(w *proctest.Wire, n int, followee schemas.ID) {
	for u := range n {
		publish(w, follow(fmt.Sprint(u), 0, schemas.UserID(fmt.Sprintf("user:%d", u)), schemas.Follow, followee))
	}
	w.WaitIdle()
}

// announcePins announces pins of an author, and returns their deliveries to users 0 to followers-1.
func announcePins(w *proctest.Wire, author schemas.UserID, pins, followers int) (want []delivered) {
	for n := range pins {
		p := pinOf(author, n, schemas.Micros(n))
		announce(w, schemas.Followee(author), p)
		for u := range followers {
			want = append(want, delivered{schemas.UserID(fmt.Sprintf("user:%d", u)), p.Pin, p.Version, 1})
		}
	}
	w.WaitIdle()
	slices.SortFunc(want, byUser)
	return want
}

// delivered is one version of a pin that a user received.
type delivered struct {
	User    schemas.UserID
	Pin     schemas.PinID
	Version schemas.Version
	Weight  float32
}

// deliveries returns the versions that users received from a followee. It verifies that each record is in the partition of
// its users.
func deliveries(t *testing.T, w *proctest.Wire, followee string) (list []delivered) {
	t.Helper()
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if r.Key != followee {
			continue
		}
		for i, user := range r.Value.Users {
			expect.Equal(t, topics.Partition(string(user), w.Kafka.Partitions), r.Partition, "partition of a delivery to %s", user)
			weight := float32(1)
			if len(r.Value.Weights) > 0 {
				weight = r.Value.Weights[i]
			}
			for _, p := range r.Value.Pins {
				list = append(list, delivered{user, p.Pin, p.Version, weight})
			}
		}
	}
	slices.SortFunc(list, byUser)
	return list
}

func byUser(a, b delivered) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Version, b.Version))
}

func expectDeliveries(t *testing.T, w *proctest.Wire, followee string, want []delivered) {
	t.Helper()
	expect.NoDiff(t, deliveries(t, w, followee), want, "deliveries of %s", followee)
}

// edgesOf returns the newest edge of each register.
func edgesOf(w *proctest.Wire, other schemas.ID) map[string]schemas.Edge {
	last := map[string]schemas.Edge{}
	for _, r := range proctest.Drain(w, w.Streams.Edges) {
		if e := r.Value; e.Other == other || e.User == schemas.UserID(other) {
			last[fmt.Sprintf("%s %s %s", e.User, e.Kind, e.Other)] = *e
		}
	}
	return last
}

// Followers follow and unfollow repeatedly, in any order. Then pins are published, while the process is killed several
// times. Every current follower gets every version exactly once, in steps of three.
func TestFanout_DeliversEachVersionOnceThroughKills(t *testing.T) {
	w, m := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 3, MaxRecentPublications: 1000, PullThreshold: never})
	rng := rand.New(rand.NewPCG(1, 2))
	const author = "user:author"

	var events []*schemas.FollowEvent
	live := map[schemas.UserID]bool{}
	for u := range 20 {
		user := schemas.UserID(fmt.Sprintf("user:%d", u))
		for i := range 4 { // odd users end with a follow
			verb := []schemas.Verb{schemas.Follow, schemas.Unfollow}[(u+i)%2]
			live[user] = verb == schemas.Follow
			events = append(events, follow(fmt.Sprintf("f%d-%d", u, i), schemas.Micros(i), user, verb, author))
		}
		events = append(events, follow(fmt.Sprintf("f%d-tie", u), 3, user, schemas.Follow, author)) // loses to an unfollow at the same time
	}
	events = append(events, events...)
	rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for i, e := range events {
		publish(w, e)
		if i == len(events)/2 {
			m.Kill()
			m.Restart()
		}
	}
	w.WaitIdle()
	for name, e := range edgesOf(w, author) {
		if e.Live != live[e.User] || e.Time != base+3 {
			t.Errorf("%s: live %v at %d, want %v at %d", name, e.Live, e.Time, live[e.User], base+3)
		}
	}

	var want []delivered
	const pins = 30
	for n := range pins {
		pin := pinOf(author, n, schemas.Micros(n))
		announce(w, author, pin)
		for user, is := range live {
			if is {
				want = append(want, delivered{user, pin.Pin, pin.Version, 1})
			}
		}
		if n%10 == 5 {
			m.Kill()
			m.Restart()
		}
	}
	w.WaitIdle()
	slices.SortFunc(want, byUser)
	expectDeliveries(t, w, author, want)
	steps := proctest.Drain(w, w.Streams.FanoutLoop)
	// Ten followers: 3, 3, 3, 1; and one more for a walk that was queued.
	expect.Between(t, len(steps), pins*3, pins*4, "loop records, at most one more per pin")
}

// Followers follow, unfollow, become inactive, are reactivated and change their weights while the process is killed. In
// the end each live follow has one edge, active or inactive.
func TestEdges_EitherActiveOrInactive(t *testing.T) {
	w, m := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 1, MaxRecentPublications: 10, PullThreshold: never})
	rng := rand.New(rand.NewPCG(7, 8))
	const author = "user:modes"
	live := map[schemas.UserID]bool{}
	setMode := func(u schemas.UserID, inactive bool) {
		proctest.Publish(w, w.Streams.EdgeModes, author, &schemas.EdgeMode{Followee: author, User: u, Inactive: inactive, BackfillID: 1})
	}
	for i := range 200 {
		u := schemas.UserID(fmt.Sprintf("user:%d", rng.IntN(30)))
		switch {
		case !live[u], rng.IntN(3) == 0:
			verb := map[bool]schemas.Verb{true: schemas.Unfollow, false: schemas.Follow}[live[u]]
			publish(w, follow(fmt.Sprintf("s%d", i), schemas.Micros(i), u, verb, author))
			live[u] = !live[u]
		case rng.IntN(2) == 0:
			proctest.Publish(w, w.Streams.EdgeWeights, author,
				&schemas.EdgeWeight{Followee: author, User: u, Weight: float32(i), Time: base + schemas.Micros(i)})
		default:
			setMode(u, rng.IntN(2) == 0) // the order of modes and follows is undefined
		}
		if i%70 == 69 {
			m.Kill()
			m.Restart()
		}
	}
	w.WaitIdle()
	want := map[byte][]string{}
	for u, is := range live {
		if !is {
			continue
		}
		inactive := rng.IntN(2) == 0
		setMode(u, inactive)
		kind := map[bool]byte{true: 'a', false: 'l'}[inactive]
		want[kind] = append(want[kind], string(u))
	}
	w.WaitIdle()
	for _, kind := range []byte{'a', 'l'} {
		slices.Sort(want[kind])
		expect.NoDiff(t, rowsOf(w, author, kind), want[kind], "edges of kind %q", kind)
	}
	// A new pin skips inactive followers; a later version of it does not.
	first := pinOf(author, 1, 0)
	second := first
	second.Version++
	announce(w, author, first, second)
	w.WaitIdle()
	versions := map[schemas.Version]int{}
	for _, b := range deliveries(t, w, author) {
		versions[b.Version]++
	}
	active := len(want['l'])
	expect.NoDiff(t, versions, map[schemas.Version]int{first.Version: active, second.Version: active + len(want['a'])}, "deliveries by version")
}

// slots returns the pins in a followee's slots; the value is true for withdrawn pins.
func slots(t *testing.T, w *proctest.Wire, followee string) map[schemas.PinID]bool {
	t.Helper()
	at := map[string]*schemas.PulledPin{}
	for _, r := range proctest.Drain(w, w.Streams.RecentsPulled) {
		if !strings.HasPrefix(r.Key, followee+" ") {
			continue
		}
		if at[r.Key] = r.Value; r.Value == nil {
			delete(at, r.Key)
		}
	}
	pins := map[schemas.PinID]bool{}
	for key, p := range at {
		if _, twice := pins[p.Pin]; twice || key != schemas.PulledKey(p.Followee, p.Slot) {
			t.Errorf("slot %q holds %s of slot %d", key, p.Pin, p.Slot)
		}
		pins[p.Pin] = p.Withdrawn
	}
	return pins
}

// bestOf is a brute-force oracle: the n best newest versions of each class.
func bestOf(published []schemas.PinVersion, n int) map[schemas.PinID]bool {
	newest := map[schemas.PinID]schemas.PinVersion{}
	for _, v := range published {
		if v.Version > newest[v.Pin].Version {
			newest[v.Pin] = v
		}
	}
	best := map[schemas.PinID]bool{}
	for _, withdrawn := range []bool{false, true} {
		var class []schemas.PinVersion
		for _, v := range newest {
			if v.Deleted == withdrawn {
				class = append(class, v)
			}
		}
		slices.SortFunc(class, func(a, b schemas.PinVersion) int {
			return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Pin, b.Pin))
		})
		for _, v := range class[:min(n, len(class))] {
			best[v.Pin] = withdrawn
		}
	}
	return best
}

// With additions only, the slots hold exactly the best pins, regardless of the order of arrival.
func TestSlots_HoldBestPins(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const limit, author = 7, "board:exact"
	w.Start("a", group(w, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 2, MaxRecentPublications: limit, PullThreshold: 0}))
	var published []schemas.PinVersion
	order := rand.New(rand.NewPCG(11, 12)).Perm(60)
	for i, n := range append(order, 60, 61) { // the last two have the lowest scores
		p := pinOf("user:a", n, schemas.Micros(n/2%30)*1e6)
		p.Board, p.Deleted = author, n%4 == 0
		published = append(published, p)
		announce(w, author, p)
		if i == 20 {
			w.WaitIdle()
			publish(w, follow("f", 0, "user:fan", schemas.Follow, author))
			w.WaitIdle()
		}
	}
	w.WaitIdle()
	expect.NoDiff(t, slots(t, w, author), bestOf(published, limit), "pins in slots, true if withdrawn")
}

// A followee that is pushed again keeps its slots until the pools have applied the last delivery of its recents.
func TestSlots_FreedAfterLastPush(t *testing.T) {
	t.Parallel()
	t.Run("all pins", func(t *testing.T) { testSlotsAreFreed(t, 0) })
	t.Run("all but one pin", func(t *testing.T) { testSlotsAreFreed(t, 2, "pin:1") })
}

func testSlotsAreFreed(t *testing.T, left int, stuck ...schemas.PinID) {
	t.Parallel()
	w := proctest.New(t)
	const author = "user:back"
	w.Start("a", group(w, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 2, MaxRecentPublications: 10, PullThreshold: 4}))
	followBy(w, 5, author)
	announce(w, author, pinOf(author, 1, 1), pinOf(author, 2, 2))
	w.WaitIdle()
	if list := deliveries(t, w, author); len(list) > 0 || len(slots(t, w, author)) != 2 {
		t.Fatalf("deliveries %v of a pulled followee, %d slots", list, len(slots(t, w, author)))
	}
	publish(w, follow("less", 1, "user:0", schemas.Unfollow, author))
	w.WaitIdle() // the pools group does not run: the first step waits for it
	expect.Equal(t, len(slots(t, w, author)), 2, "slots while the pins are being pushed")
	w.Start("b", relay(w, stuck...))
	w.WaitIdle()
	expect.NoDiff(t, len(slots(t, w, author)), left, "remaining slots")
	if len(stuck) > 0 {
		return
	}
	var want []delivered
	for n := 1; n < 5; n++ {
		for i := 1; i <= 2; i++ {
			p := pinOf(author, i, schemas.Micros(i))
			want = append(want, delivered{schemas.UserID(fmt.Sprintf("user:%d", n)), p.Pin, p.Version, 1})
		}
	}
	expectDeliveries(t, w, author, want)
}

// A lowered cap is enforced in steps that fit the bounds of a record.
func TestRecents_LoweredCap(t *testing.T) {
	t.Parallel()
	t.Run("pushed", func(t *testing.T) { testLoweredCap(t, never) })
	t.Run("pulled", func(t *testing.T) { testLoweredCap(t, 0) })
}

func testLoweredCap(t *testing.T, above int) {
	t.Parallel()
	w := proctest.New(t)
	const before, after, limit, author = 1200, 200, 10, "user:less"
	member := func(recents int) {
		cfg := fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 10, MaxRecentPublications: recents, PullThreshold: above}
		w.StartWith("a", func(c *rows.Config) { c.MaxRecordWrites, c.MaxRecordWriteBytes = 1000, 1<<20 }, relay(w), group(w, cfg))
	}
	member(10_000)
	publish(w, follow("f", 1, "user:fan", schemas.Follow, author))
	w.WaitIdle()
	for n := range before {
		announce(w, author, pinOf(author, n, 1))
	}
	w.WaitIdle()
	member(limit)
	for n := range after {
		announce(w, author, pinOf(author, before+n, 2))
	}
	w.WaitIdle()
	expect.Between(t, len(rowsOf(w, author, 'r')), limit, limit+after/2, "recents kept of %d: those since the last trim", before+after)
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
}

// Pins and followers arrive while the many slots of a followee are freed step by step. The followee is pulled again, and
// its slots hold the best pins. The bounds of a record are the minimum that package rows accepts, and the process is
// killed.
func TestSlots_ReusedWhileFreeing(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const limit, author = 400, "user:again"
	member := func(above int) *proctest.Member {
		cfg := fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 10, MaxRecentPublications: limit, PullThreshold: above}
		return w.StartWith("a", func(c *rows.Config) { c.MaxRecordWrites, c.MaxRecordWriteBytes = 1000, 1<<20 }, relay(w), group(w, cfg))
	}
	var published []schemas.PinVersion
	say := func(n int, at schemas.Micros) {
		p := pinOf(author, n, schemas.Micros(n)*1e6)
		p.Version, p.Deleted = schemas.Version(base+at), n%3 == 0
		published = append(published, p)
		announce(w, author, p)
	}
	join := func(n int) {
		publish(w, follow(fmt.Sprint("f", n), 1, schemas.UserID(fmt.Sprintf("user:%d", n)), schemas.Follow, author))
	}
	member(0)
	join(0)
	w.WaitIdle()
	for n := range 600 {
		say(n, 1e6)
	}
	w.WaitIdle()
	must.Equal(t, len(slots(t, w, author)), limit+200, "slots, 200 of them withdrawn")
	m := member(3)
	say(600, 2e6) // the followee is pushed from here on
	w.Eventually("slots are freed", func() bool { return len(slots(t, w, author)) < limit })
	m.Kill()
	m.Restart()
	for n := range 40 {
		say(n*20, 3e6)
		join(n)
	}
	w.WaitIdle()
	say(900, 4e6) // triggers the switch if slots were being freed at the last publication
	w.WaitIdle()
	expect.NoDiff(t, slots(t, w, author), bestOf(published, limit), "pins in slots, true if withdrawn")
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
	if kinds := continuations(w); kinds["free"] == 0 || kinds["fill"] == 0 {
		t.Errorf("continuations %v: want some of each kind", kinds)
	}
}

// continuations counts the records of fanout-loop by kind.
func continuations(w *proctest.Wire) map[string]int {
	kinds := map[string]int{}
	for _, r := range proctest.Drain(w, w.Streams.FanoutLoop) {
		switch c := r.Value; {
		case c.Walk != nil:
			kinds["walk"]++
		case c.Backfill != nil:
			kinds["backfill"]++
		case c.Slots.Free:
			kinds["free"]++
		default:
			kinds["fill"]++
		}
	}
	return kinds
}

// longPin returns a pin whose interests have long ids.
func longPin(author schemas.UserID, n int) schemas.PinVersion {
	p := pinOf(author, n, schemas.Micros(n))
	p.Interests = nil
	for i := range schemas.MaxInterests {
		p.Interests = append(p.Interests, schemas.InterestID(fmt.Sprintf("interest:%d-%s", i, strings.Repeat("x", 230))))
	}
	return p
}

// A backfill delivers only the best recents, also when it takes several portions and a trim is due.
func TestBackfill_PortionsHaveBestRecents(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const before, limit, author = 100, 40, "user:much"
	for _, recents := range []int{before, limit} {
		w.Start("a", relay(w), group(w, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 10, MaxRecentPublications: recents, PullThreshold: never}))
		if recents == before {
			for n := range before {
				announce(w, author, longPin(author, n))
			}
		}
		w.WaitIdle()
	}
	publish(w, follow("f", 1, "user:fan", schemas.Follow, author))
	w.WaitIdle()
	var want []delivered
	for n := before - limit; n < before; n++ {
		p := longPin(author, n)
		want = append(want, delivered{"user:fan", p.Pin, p.Version, 1})
	}
	expectDeliveries(t, w, author, want)
	expect.True(t, continuations(w)["backfill"] > 0, "the recents take several records")
}

// A followee that is deleted between two portions of a backfill still answers, because the pools wait for one answer per
// request.
func TestBackfill_FolloweeDeletedMeanwhileStillAnswers(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const author, fan, pins, request = "user:later", "user:fan", 100, 7
	deletedLater := deletedtest.Of()
	cfg := fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 10, MaxRecentPublications: pins, PullThreshold: never}
	w.Start("a", relay(w), fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deletedLater))
	publish(w, follow("f", 1, fan, schemas.Follow, author))
	for n := range pins {
		announce(w, author, longPin(author, n))
	}
	w.WaitIdle()
	before := deliveries(t, w, author)
	deletedLater.Note(author, 0) // its rows exist until the erasure arrives
	proctest.Publish(w, w.Streams.EdgeModes, author, &schemas.EdgeMode{Followee: author, User: fan, BackfillID: request})
	w.WaitIdle()
	answers := 0
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if r.Value.BackfillID == request {
			answers++
		}
	}
	expect.Equal(t, answers, 1, "answers")
	if after := deliveries(t, w, author); len(after) == len(before) || len(after) >= len(before)+pins {
		t.Errorf("%d pins delivered before the deletion and %d after it, want some before", len(before), len(after)-len(before))
	}
}

// For pins with the longest facets, the effect of each record stays small and complete in backfills, walks and switches in
// both directions.
func TestFanout_SplitsLongPins(t *testing.T) {
	const author, pins, followers = "user:long", 50, 60
	w, _ := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 1000, MaxRecentPublications: 100, PullThreshold: followers})
	published := map[schemas.PinID]bool{}
	for n := range pins {
		p := longPin(author, n)
		p.Deleted = n%10 == 9
		published[p.Pin] = p.Deleted
		announce(w, author, p)
	}
	w.WaitIdle()
	followBy(w, followers, author)
	expect.Equal(t, len(deliveries(t, w, author)), pins*followers, "deliveries of %d pins to %d followers", pins, followers)
	last := longPin(author, pins)
	published[last.Pin] = false
	announce(w, author, last)
	publish(w, follow("one more", 0, "user:more", schemas.Follow, author))
	w.WaitIdle()
	expect.NoDiff(t, slots(t, w, author), published, "slots, true if withdrawn")
	publish(w,
		follow("unfollow 0", 1, "user:0", schemas.Unfollow, author), follow("unfollow 1", 1, "user:1", schemas.Unfollow, author),
		follow("a tenth", 1, "user:more", schemas.Unfollow, author))
	for n := 2; n < 12; n++ {
		publish(w, follow(fmt.Sprintf("less-%d", n), 1, schemas.UserID(fmt.Sprintf("user:%d", n)), schemas.Unfollow, author))
	}
	w.WaitIdle()
	expect.Equal(t, len(slots(t, w, author)), 0, "remaining slots")
	largest, kinds := 0, continuations(w)
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		largest = max(largest, len(r.Value.Users)*len(r.Value.Pins))
	}
	expect.AtMost(t, largest, 50, "rows of 16 KiB per delivery")
	for _, kind := range []string{"backfill", "fill", "walk"} {
		expect.AtLeast(t, kinds[kind], 1, "continuations %q", kind)
	}
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
}

// Many pins of one followee are published at once. In every partition a walk starts after the previous one has ended, so at
// most one step of it precedes the deliveries of others.
func TestWalks_OfOneFolloweeRunInSequence(t *testing.T) {
	w, _ := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 4, MaxRecentPublications: 100, PullThreshold: never})
	const followers, pins, author = 60, 20, "user:busy"
	followBy(w, followers, author)
	want := announcePins(w, author, pins, followers)
	expectDeliveries(t, w, author, want)
	now, ended := map[int32]schemas.PinID{}, map[int32]map[schemas.PinID]bool{}
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		pin, before := r.Value.Pins[0].Pin, now[r.Partition]
		if ended[r.Partition] == nil {
			ended[r.Partition] = map[schemas.PinID]bool{}
		}
		if ended[r.Partition][before] = pin != before; ended[r.Partition][pin] {
			t.Fatalf("partition %d: %s continued after another pin", r.Partition, pin)
		}
		now[r.Partition] = pin
	}
}

func TestFanout(t *testing.T) {
	w, _ := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 100, MaxRecentPublications: 5, PullThreshold: never})
	for name, run := range map[string]func(*testing.T, *proctest.Wire){
		"a new follower gets the best recents":             testBackfill,
		"recents are trimmed":                              testTrim,
		"the erasure of an author keeps pins of others":    testFormerAuthor,
		"newer versions are delivered, older ones are not": testVersions,
		"deliveries carry the weight of the edge":          testWeights,
		"a block is sent to both sides":                    testBlocks,
		"bad records go to the dead letters":               testDeadLetters,
		"deleted users' follows are dropped":               testDeletedUsers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each case has its own followees and mostly waits
			run(t, w)
		})
	}
}

func testBackfill(t *testing.T, w *proctest.Wire) {
	var want []delivered
	for _, n := range rand.New(rand.NewPCG(3, 4)).Perm(20) {
		p := pinOf("user:back", 100+n, schemas.Micros(n)*1e6)
		if n == 0 {
			p.Quality = 1e6 // equals 14 time constants
		}
		if n != 19 { // the newest pin is no longer the board's, which a new follower must receive
			p.Board = "board:back"
		}
		announce(w, "board:back", p)
		if n == 0 || n > 14 {
			want = append(want, delivered{"user:fan", p.Pin, p.Version, 1})
		}
	}
	slices.SortFunc(want, func(a, b delivered) int { return cmp.Compare(a.Pin, b.Pin) })
	w.WaitIdle()
	publish(w, follow("back", 0, "user:fan", schemas.Follow, "board:back"),
		follow("again", 1, "user:fan", schemas.Follow, "board:back")) // delivers nothing more
	w.WaitIdle()
	expectDeliveries(t, w, "board:back", want)
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		for _, p := range r.Value.Pins {
			if p.Pin == "pin:100" && p.BaseScore != score.Base(1e6, base, halfLife) {
				t.Errorf("%s: score %v", p.Pin, p.BaseScore)
			}
		}
	}
}

// rowsOf returns the names of an owner's rows of a kind, without the first byte.
func rowsOf(w *proctest.Wire, owner string, kind byte) (names []string) {
	for _, row := range w.RowsOfKind(topics.Fanout, owner, kind) {
		names = append(names, string(row.Name[1:]))
	}
	return names
}

// deletionOf returns the version that deletes a pin: it has no facets.
func deletionOf(p schemas.PinVersion) schemas.PinVersion {
	p.Version++
	p.Facets, p.Deleted = schemas.Facets{}, true
	return p
}

func testTrim(t *testing.T, w *proctest.Wire) {
	const pins, recents = 400, 5
	var all, deletions []schemas.PinVersion
	for n := range pins {
		p := pinOf("user:trim", 200+n, schemas.Micros(n))
		all = append(all, p)
		if n < pins/2 {
			deletions = append(deletions, deletionOf(p))
		}
	}
	announce(w, "user:trim", all...)
	w.WaitIdle()
	if slices.Contains(rowsOf(w, "user:trim", 'p'), string(deletions[0].Pin)) {
		t.Fatalf("%s is among the recents: want a deletion of a trimmed pin", deletions[0].Pin)
	}
	announce(w, "user:trim", deletions...)
	w.WaitIdle()
	own := rowsOf(w, "user:trim", 'o')
	expect.Equal(t, len(own), pins-len(deletions), "pins listed as the author's own, of %d with %d deletions", pins, len(deletions))
	expect.Between(t, len(w.Rows(topics.Fanout, "user:trim"))-len(own), 2*recents, 30*recents, "rows of %d publications", pins)
	publish(w, follow("trim", 0, "user:fan", schemas.Follow, "user:trim"))
	w.WaitIdle()
	names := convert.All(deliveries(t, w, "user:trim"), func(d delivered) schemas.PinID { return d.Pin })
	want := []schemas.PinID{"pin:395", "pin:396", "pin:397", "pin:398", "pin:399", "pin:595", "pin:596", "pin:597", "pin:598", "pin:599"}
	expect.NoDiff(t, names, want, "deliveries to a new follower")
}

// An earlier create by another author changes the author of a pin that the recents of its former author have dropped. The
// erasure of the former author deletes only the pins that are still that author's.
func testFormerAuthor(t *testing.T, w *proctest.Wire) {
	const author, pins = "user:former", 60
	var all []schemas.PinVersion
	want := map[schemas.ID]bool{}
	for n := range pins {
		p := pinOf(author, 1300+n, schemas.Micros(n)*1e6)
		all = append(all, p)
		if n > 1 {
			want[schemas.ID(p.Pin)] = true
		}
	}
	announce(w, author, all...)
	w.WaitIdle()
	known := rowsOf(w, author, 'p')
	for _, p := range all[:2] {
		if slices.Contains(known, string(p.Pin)) {
			t.Fatalf("%s is among the recents", p.Pin)
		}
	}
	moved := all[0]
	moved.Version, moved.Created, moved.Author = moved.Version+1, moved.Created-1, "user:earlier"
	announce(w, author, moved, deletionOf(all[1]))
	announce(w, "user:earlier", moved)
	w.WaitIdle()
	proctest.Publish(w, w.Streams.Erasures, author, &schemas.Erasure{User: author, Step: schemas.EraseUser, Time: base})
	w.WaitIdle()
	got := map[schemas.ID]bool{}
	for _, r := range proctest.Drain(w, w.Streams.Pins) {
		if r.Value.Actor == author && r.Value.Verb == schemas.Delete {
			got[r.Value.Object] = true
		}
	}
	expect.NoDiff(t, got, want, "pins deleted with their author")
	expect.Empty(t, w.Rows(topics.Fanout, author), "remaining rows")
	expect.NoDiff(t, rowsOf(w, "user:earlier", 'o'), []string{string(moved.Pin)}, "pins of the new author")
}

func testVersions(t *testing.T, w *proctest.Wire) {
	publish(w, follow("ver", 0, "user:fan", schemas.Follow, "user:ver"))
	w.WaitIdle()
	first := pinOf("user:ver", 800, 0)
	second, third := first, first
	second.Version, second.Author = first.Version+1, "user:other"
	third.Version, third.Deleted = first.Version+2, true
	announce(w, "user:ver", first, first, second, first, third, second, first)
	w.WaitIdle()
	expectDeliveries(t, w, "user:ver", []delivered{
		{"user:fan", first.Pin, first.Version, 1}, {"user:fan", first.Pin, second.Version, 1}, {"user:fan", first.Pin, third.Version, 1},
	})
	publish(w, follow("ver2", 0, "user:late", schemas.Follow, "user:ver"))
	w.WaitIdle()
	expectDeliveries(t, w, "user:ver", []delivered{
		{"user:fan", first.Pin, first.Version, 1}, {"user:fan", first.Pin, second.Version, 1}, {"user:fan", first.Pin, third.Version, 1},
		{"user:late", first.Pin, third.Version, 1}, // the deletion
	})
}

func testWeights(t *testing.T, w *proctest.Wire) {
	setWeight := func(user schemas.UserID, weight float32, at schemas.Micros) {
		proctest.Publish(w, w.Streams.EdgeWeights, "user:wei",
			&schemas.EdgeWeight{Followee: "user:wei", User: user, Weight: weight, Time: base + at})
	}
	setWeight("user:early", 2, 1) // before the follow
	w.WaitIdle()
	publish(w, follow("w1", 0, "user:early", schemas.Follow, "user:wei"), follow("w2", 0, "user:later", schemas.Follow, "user:wei"))
	w.WaitIdle()
	setWeight("user:later", 3, 5)
	setWeight("user:later", 9, 4) // older: ignored
	setWeight("user:stranger", 3, 1)
	w.WaitIdle()
	announce(w, "user:wei", pinOf("user:wei", 900, 0))
	w.WaitIdle()
	publish(w, follow("w3", 1, "user:early", schemas.Unfollow, "user:wei"))
	w.WaitIdle()
	publish(w, follow("w4", 2, "user:early", schemas.Follow, "user:wei"))
	w.WaitIdle()
	v := schemas.Version(base)
	expectDeliveries(t, w, "user:wei", []delivered{
		{"user:early", "pin:900", v, 2}, {"user:early", "pin:900", v, 2}, {"user:later", "pin:900", v, 3},
	})
}

// A weight of 1 leaves no row for a user who never followed, and a deleted user's weight leaves none either. For a user
// with a register the row stays, and an older weight that arrives late has no effect.
func TestWeight_DefaultLeavesNoRow(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const author, stranger, fan, former, deletedLater = "user:author", "user:stranger", "user:fan", "user:former", "user:later"
	deletions := deletedtest.Of()
	cfg := fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 10, MaxRecentPublications: 10, PullThreshold: never}
	w.Start("a", relay(w), fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deletions))
	weighed := func(when string, weight float32, at schemas.Micros, want ...string) {
		t.Helper()
		for _, user := range []schemas.UserID{stranger, fan, former, deletedLater} {
			proctest.Publish(w, w.Streams.EdgeWeights, author,
				&schemas.EdgeWeight{Followee: author, User: user, Weight: weight, Time: base + at})
		}
		w.WaitIdle()
		expect.NoDiff(t, rowsOf(w, author, 'w'), want, "%s: users with a weight", when)
	}
	publish(w, follow("1", 0, fan, schemas.Follow, author),
		follow("2", 0, former, schemas.Follow, author), follow("3", 1, former, schemas.Unfollow, author))
	w.WaitIdle()
	weighed("a weight", 3, 5, fan, former, deletedLater, stranger)
	deletions.Note(deletedLater, 0)
	weighed("the default weight", 1, 6, fan, former)
	weighed("a late weight", 2, 4, fan, former, stranger)
	weighed("the default weight again", 1, 7, fan, former)
	publish(w, follow("4", 3, former, schemas.Follow, author), follow("5", 3, stranger, schemas.Follow, author))
	w.WaitIdle()
	announce(w, author, pinOf(author, 990, 0))
	w.WaitIdle()
	v := schemas.Version(base)
	expectDeliveries(t, w, author, []delivered{{fan, "pin:990", v, 1}, {former, "pin:990", v, 1}, {stranger, "pin:990", v, 1}})
}

func testBlocks(t *testing.T, w *proctest.Wire) {
	publish(w,
		follow("b1", 1, "user:a", schemas.Block, "user:blo"),
		follow("b2", 1, "user:a", schemas.Unblock, "user:blo"), // same time: loses the tie
		follow("b3", 1, "user:a", schemas.Follow, "user:blo"),
		follow("b4", 1, "user:a", schemas.Block, "board:blo"))
	w.WaitIdle()
	want := map[string]schemas.Edge{
		"user:a block user:blo":   {User: "user:a", Other: "user:blo", Kind: schemas.BlockEdge, Live: true, Time: base + 1},
		"user:blo blocked user:a": {User: "user:blo", Other: "user:a", Kind: schemas.BlockedEdge, Live: true, Time: base + 1},
		"user:a follow user:blo":  {User: "user:a", Other: "user:blo", Kind: schemas.FollowEdge, Live: true, Time: base + 1},
	}
	expect.NoDiff(t, edgesOf(w, "user:blo"), want, "edges of the user")
	expect.Equal(t, len(edgesOf(w, "board:blo")), 1, "edges of the board")
}

func testDeadLetters(t *testing.T, w *proctest.Wire) {
	before := len(proctest.Drain(w, w.Streams.DeadLetters))
	const key = "user:bad"
	w.PublishBytes(topics.Follows, key, []byte("no record"))
	proctest.Publish(w, w.Streams.Follows, key, follow("d1", 0, "user:a", "hug", key))
	proctest.Publish(w, w.Streams.Follows, key, follow("d2", 0, "user:a", schemas.Follow, "user:other"))
	proctest.Publish(w, w.Streams.Publications, key, &schemas.Publication{Followee: key, PinVersion: schemas.PinVersion{Pin: "pin:x"}})
	proctest.Publish(w, w.Streams.EdgeWeights, key, &schemas.EdgeWeight{Followee: key, User: "user:a", Weight: -1})
	publish(w, follow("d3", 0, "user:a", schemas.Follow, key))
	arrival := time.Now().Truncate(time.Millisecond)
	latest, later := follow("d4", 0, "user:b", schemas.Follow, key), follow("d5", 0, "user:c", schemas.Follow, key)
	latest.Time = schemas.MicrosOf(arrival.Add(schemas.MaxAhead))
	later.Time = latest.Time + 1 // too far in the future
	proctest.PublishAt(w, w.Streams.Follows, arrival, key, latest, later)
	w.WaitIdle()
	expect.Equal(t, len(proctest.Drain(w, w.Streams.DeadLetters))-before, 6, "dead letters")
	expect.Equal(t, len(edgesOf(w, key)), 2, "edges: the valid ones of user:a and user:b")
}

func testDeletedUsers(t *testing.T, w *proctest.Wire) {
	publish(w, follow("g1", 0, "user:deleted", schemas.Follow, "user:del"), follow("g2", 0, "user:fan", schemas.Follow, "user:deleted"))
	w.WaitIdle()
	expect.Equal(t, len(edgesOf(w, "user:deleted"))+len(edgesOf(w, "user:del")), 0, "edges")
	expect.Empty(t, w.Rows(topics.Fanout, "user:del"), "rows")
}
