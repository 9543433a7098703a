package oracle

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// pipeline runs the groups from events to pools in one member, and applies the same events to a brute-force product.
type pipeline struct {
	*proctest.Wire
	t         *testing.T
	product   *Product
	publisher *topics.Publisher
	deleted   topics.DeletedUsers
	pulled    *generator.Pulled
	pools     pools.Config
	member    *proctest.Member
	generator *generator.Generator
	effects   map[string]int64
}

const never = 1_000_000_000 // a threshold that is never exceeded

// rules returns a fan-out configuration with small steps.
func rules(pullAbove int) fanout.Config {
	cfg := fanout.DefaultConfig()
	cfg.HalfLife, cfg.StepEdges, cfg.PullAbove = time.Hour, 2, pullAbove
	cfg.BackfillInterval = 0 // no backfill is deferred, because nothing waits for it
	return cfg
}

func newPipeline(t *testing.T, cfg pools.Config) *pipeline {
	t.Helper()
	p := &pipeline{
		Wire: proctest.New(t), t: t, product: New(Config{HalfLife: time.Hour, MaxFollowees: cfg.MaxFollowees}), pools: cfg, effects: map[string]int64{},
		pulled: new(generator.Pulled),
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	if p.publisher, err = topics.NewPublisher(p.Kafka, p.Streams); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.publisher.Close)
	p.deleted = topics.NewDeletedUsers(p.Kafka, p.Streams, "test", log)
	slots := topics.NewGlobalTable(p.Kafka, p.Streams.RecentsPulled, "test", log)
	slots.OnChange(p.pulled.Change)
	p.Hold(p.deleted.Run)
	p.Hold(slots.Run)
	for _, ready := range []<-chan struct{}{p.deleted.Ready(), slots.Ready()} {
		select {
		case <-ready:
		case <-time.After(proctest.Patience):
			t.Fatal("what is held whole is not ready")
		}
	}
	return p
}

// start restarts the member with another configuration. A crash drops what it had not committed.
func (p *pipeline) start(cfg fanout.Config, crash bool) {
	p.t.Helper()
	if p.member != nil {
		p.keepEffects()
		if crash {
			p.member.Kill()
		} else {
			p.member.Stop()
		}
	}
	groups := []rows.Group{
		objects.Group(objects.DefaultConfig(), p.Streams, p.deleted),
		actors.Group(actors.DefaultConfig(), p.Streams, p.deleted),
		fanout.Group(cfg, p.Kafka.Partitions, p.Streams, p.deleted),
		pools.Group(p.pools, p.Streams, p.deleted),
	}
	p.attach(p.Start("a", groups...))
}

// attach makes the pipeline read the pools of a member.
func (p *pipeline) attach(member *proctest.Member) {
	p.t.Helper()
	p.member = member
	var err error
	p.generator, err = generator.New(p.pools, generator.DefaultConfig(), generator.Deps{
		Rows: p.member.View(topics.Pools), Streams: p.Streams, Deleted: p.deleted, Pulled: p.pulled,
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// keepEffects adds the effects that the member's groups have counted.
func (p *pipeline) keepEffects() {
	for _, group := range []string{topics.Fanout, topics.Pools} {
		for name, n := range p.member.Status(group).Effects {
			p.effects[group+" "+name] += n
		}
	}
}

// expectEffects fails unless each of the effects was counted: the rule under test must have been applied.
func (p *pipeline) expectEffects(names ...string) {
	p.t.Helper()
	p.keepEffects()
	for _, name := range names {
		if p.effects[name] == 0 {
			p.t.Errorf("no %s: %v", name, p.effects)
		}
	}
}

// tell publishes events and applies them to the product.
func (p *pipeline) tell(lines []schemas.Line) {
	p.t.Helper()
	if err := p.publisher.Publish(p.t.Context(), lines); err != nil {
		p.t.Fatal(err)
	}
	for _, line := range lines {
		p.product.Apply(line)
	}
}

// compare compares every pool, and the number of waiting pins, with the product.
func (p *pipeline) compare(when string) {
	p.t.Helper()
	p.WaitIdle()
	compared := 0
	for _, user := range p.product.Users() {
		p.Eventually("the rows of "+string(user), func() bool { return p.member.Owns(topics.Pools, string(user)) })
		waiting := map[schemas.PinID]bool{}
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
			want := p.product.Pool(user, source, 1000)
			got, err := p.generator.Pool(p.t.Context(), user, source, 1000)
			if err != nil {
				p.t.Fatal(err)
			}
			if diff := cmp.Diff(want, []schemas.PoolItem(got.Items), cmpopts.EquateEmpty()); diff != "" {
				p.t.Fatalf("%s: pool %s of %s (-want +got):\n%s", when, source, user, diff)
			}
			for i := range want {
				waiting[want[i].Pin] = true
			}
			compared += len(want)
		}
		if n, err := p.generator.Waiting(p.t.Context(), user); err != nil || n != min(len(waiting), generator.MaxWaiting) {
			p.t.Errorf("%s: %d wait for %s, %v, want %d", when, n, user, err, len(waiting))
		}
	}
	if compared == 0 {
		p.t.Errorf("%s: no candidate was compared", when)
	}
}

// worlds draws random products: each has a few users, boards, interests and pins with many events.
type worlds struct {
	rng   *rand.Rand
	lines []schemas.Line
}

// newWorlds returns the events of n worlds, in random order, half of them twice.
func newWorlds(seed uint64, n int) []schemas.Line {
	w := &worlds{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range n {
		w.world(fmt.Sprintf("%d-%d", seed, i))
	}
	w.lines = append(w.lines, w.lines[:len(w.lines)/2]...)
	w.rng.Shuffle(len(w.lines), func(i, j int) { w.lines[i], w.lines[j] = w.lines[j], w.lines[i] })
	return w.lines
}

func pick[T any](w *worlds, from ...T) T { return from[w.rng.IntN(len(from))] }

func (w *worlds) world(name string) {
	user := func(i int) schemas.UserID { return schemas.UserID(fmt.Sprintf("user:%s-%d", name, i)) }
	boards := []schemas.BoardID{"", schemas.BoardID("board:a-" + name), schemas.BoardID("board:b-" + name)}
	interests := []schemas.InterestID{schemas.InterestID("interest:a-" + name), schemas.InterestID("interest:b-" + name)}
	const users, doomed = 5, 4 // the last one is deleted in some worlds and owns nothing of others
	for range 60 {
		object := pick(w, schemas.ID(user(w.rng.IntN(users))), schemas.ID(boards[1+w.rng.IntN(2)]), schemas.ID(pick(w, interests...)))
		verb := pick(w, schemas.Follow, schemas.Follow, schemas.Follow, schemas.Unfollow, schemas.Block, schemas.Unblock)
		w.lines = append(w.lines, edgeEvent(w.rng.IntN(20), user(w.rng.IntN(users)), verb, object))
	}
	for n := range 24 {
		pin, author := schemas.ID(fmt.Sprintf("pin:%s-%d", name, n)), w.rng.IntN(users)
		for range 1 + w.rng.IntN(4) {
			verb := pick(w, schemas.Create, schemas.Create, schemas.Update, schemas.Update, schemas.Delete)
			by := author
			if author != doomed && verb == schemas.Create {
				by = pick(w, author, w.rng.IntN(doomed)) // the earliest create determines the author
			}
			at := 30 + w.rng.IntN(20)
			facets := on(boards[at%len(boards)], interests[:at%3]...)
			w.lines = append(w.lines, pinEvent(at, user(by), verb, pin, facets))
		}
	}
	if w.rng.IntN(3) == 0 {
		w.lines = append(w.lines, userEvent(60, user(doomed), schemas.Delete))
	}
}

// parts cuts lines into n parts.
func parts(lines []schemas.Line, n int) [][]schemas.Line {
	size := (len(lines) + n - 1) / n
	return slices.Collect(slices.Chunk(lines, size))
}

// For any events in any order and with repeats and crashes, the pools end as the oracle requires. This holds with every
// followee pushed, with every one pulled, and with rules that change in between.
func TestPoolsOfRandomProducts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, test := range map[string]struct {
		rules   []fanout.Config // applied one after the other
		effects []string
		most    int // cap of followees; 0: the default, which is not reached
	}{
		"push": {[]fanout.Config{rules(never), rules(never)}, nil, 0},
		"pull": {[]fanout.Config{rules(0), rules(0)}, []string{"fanout pulled", "fanout to_pull"}, 0},
		"push, with few followees": {
			[]fanout.Config{rules(never), rules(never)}, []string{"pools admitted_follows", "fanout inactive"}, 2,
		},
		"rules that change": {
			[]fanout.Config{rules(never), rules(0), rules(2), rules(never), rules(0), rules(never)},
			[]string{"fanout pulled", "fanout to_pull", "fanout to_push"}, 0,
		},
		"rules that change, with few followees": {
			[]fanout.Config{rules(never), rules(0), rules(2), rules(0), rules(never)},
			[]string{"fanout pulled", "fanout to_pull", "fanout to_push", "pools admitted_follows"}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := pools.DefaultConfig()
			cfg.InactiveAfter, cfg.MaxFollowees = 0, test.most
			p := newPipeline(t, cfg)
			for i, lines := range parts(newWorlds(seed, 8), len(test.rules)) {
				p.start(test.rules[i], i%2 == 1)
				p.tell(lines)
				if i%2 == 1 {
					p.compare(fmt.Sprintf("after part %d", i+1))
					// The earlier pins may all have arrived before the edges. These pins are delivered to followers.
					p.tell(news(fmt.Sprintf("%d-%d", seed, i), p.product))
					p.compare(fmt.Sprintf("after the news of part %d", i+1))
				}
			}
			p.compare("at the end")
			p.expectEffects(test.effects...)
		})
	}
}

// back announces that every user is active.
func (p *pipeline) back() {
	for _, user := range p.product.Users() {
		proctest.Publish(p.Wire, p.Streams.UserActivity, string(user), &schemas.UserActivity{User: user, Time: schemas.MicrosOf(time.Now())})
	}
}

// Every user becomes inactive in the middle. New pins are not delivered to them, but withdrawals are. After the reactivation,
// the pools are those of the oracle. The process is killed in between.
func TestPoolsOfThoseWhoComeBack(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, most := range map[string]int{"all followees": 0, "few followees": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testThoseWhoComeBack(t, seed, most)
		})
	}
}

func testThoseWhoComeBack(t *testing.T, seed uint64, most int) {
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter, cfg.MaxFollowees = time.Second, most
	p := newPipeline(t, cfg)
	for i, lines := range parts(newWorlds(seed, 6), 3) {
		p.start([]fanout.Config{rules(never), rules(never), rules(3)}[i], i > 0)
		p.tell(lines)
		p.WaitIdle()
		p.Eventually("everybody is away", func() bool { return p.allAway() })
		p.tell(news(fmt.Sprintf("%d-%d", seed, i), p.product))
		p.WaitIdle()
		p.onlyVisible()
		p.back()
		p.compare(fmt.Sprintf("part %d", i+1))
	}
	p.expectEffects("fanout inactive", "fanout deactivated", "fanout reactivated", "pools deactivated", "pools reactivated")
}

// Every user is inactive when InactiveAfter is set to 0. After the reactivation, users have the pins published in the meantime,
// and later ones.
func TestPoolsOfThoseWhoWereAwayWhenNobodyGoesAway(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter = time.Second
	p := newPipeline(t, cfg)
	p.start(rules(never), false)
	p.tell(newWorlds(seed, 4))
	p.WaitIdle()
	p.Eventually("everybody is away", func() bool { return p.allAway() })
	p.tell(news(fmt.Sprintf("%d-before", seed), p.product))
	p.WaitIdle()
	p.pools.InactiveAfter = 0
	p.start(rules(never), false)
	p.back()
	p.compare("back")
	p.tell(news(fmt.Sprintf("%d-after", seed), p.product))
	p.compare("after the news")
	p.expectEffects("fanout inactive", "pools deactivated", "pools reactivated")
}

// allAway reports whether every user with a followee is inactive, and every followee was notified.
func (p *pipeline) allAway() bool {
	for _, user := range p.product.Users() {
		for _, e := range p.product.Edges(user) {
			if e.Kind == schemas.FollowEdge && e.Live && !p.product.deleted(schemas.UserID(e.Other)) && !p.away(user, e.Other) {
				return false
			}
		}
	}
	return true
}

// away reports whether the edge belongs to an inactive user, according to the rows of fanout.
func (p *pipeline) away(user schemas.UserID, followee schemas.ID) bool {
	row := append([]byte{'a'}, user...)
	for n := -1; n < 100; n++ {
		owner := string(followee)
		if n >= 0 {
			owner += fmt.Sprintf("\x01%d", n)
		}
		var value []byte
		err := p.member.View(topics.Fanout).Read(p.t.Context(), owner, func(s rows.Snapshot) (err error) {
			value, err = s.Get(row)
			return err
		})
		if err == nil && value != nil {
			return true
		}
	}
	return false
}

// news returns a new pin by each user, and a deletion or another board for some existing pins.
func news(name string, product *Product) []schemas.Line {
	var lines []schemas.Line
	for i, user := range product.Users() {
		pin := schemas.ID(fmt.Sprintf("pin:news-%s-%d", name, i))
		lines = append(lines, pinEvent(100+i, user, schemas.Create, pin))
	}
	for i, pin := range product.Pins() {
		switch i % 4 {
		case 0:
			lines = append(lines, pinEvent(200, pin.Author, schemas.Delete, schemas.ID(pin.ID)))
		case 1:
			lines = append(lines, pinEvent(200, pin.Author, schemas.Update, schemas.ID(pin.ID), on("board:elsewhere")))
		}
	}
	return lines
}

// onlyVisible fails if a pool contains a pin that the oracle hides.
func (p *pipeline) onlyVisible() {
	p.t.Helper()
	for _, user := range p.product.Users() {
		p.Eventually("the rows of "+string(user), func() bool { return p.member.Owns(topics.Pools, string(user)) })
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
			got, err := p.generator.Pool(p.t.Context(), user, source, 1000)
			if err != nil {
				p.t.Fatal(err)
			}
			for _, item := range got.Items {
				if !p.product.Visible(user, source, item.Pin) {
					p.t.Errorf("%s, who is away, would be shown %s of %s", user, item.Pin, source)
				}
			}
		}
	}
}
