package oracle

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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

// fanoutConfig returns a fan-out configuration with small steps.
func fanoutConfig(pullAbove int) fanout.Config {
	cfg := fanout.DefaultConfig()
	cfg.ScoreHalfLife, cfg.StepFollowers, cfg.PullThreshold = time.Hour, 2, pullAbove
	cfg.BackfillInterval = 0 // defer no backfill: the test does not wait for deferred ones
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
	p.publisher, err = topics.NewPublisher(p.Kafka, p.Streams)
	must.OK(t, err)
	t.Cleanup(p.publisher.Close)
	p.deleted = topics.DeletedUsers{GlobalTable: topics.NewGlobalTable(p.Kafka, p.Streams.UsersDeleted, "test", log)}
	slots := topics.NewGlobalTable(p.Kafka, p.Streams.RecentsPulled, "test", log)
	slots.OnChange(p.pulled.Change)
	p.Hold(p.deleted.Run)
	p.Hold(slots.Run)
	for _, ready := range []<-chan struct{}{p.deleted.Ready(), slots.Ready()} {
		select {
		case <-ready:
		case <-time.After(proctest.Patience):
			t.Fatal("a global table is not ready")
		}
	}
	return p
}

// start restarts the member with another configuration. A crash drops its uncommitted transaction.
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
	p.generator = must.Get(generator.New(p.pools, generator.DefaultConfig(), generator.Deps{
		Rows: p.member.View(topics.Pools), Streams: p.Streams, Deleted: p.deleted, Pulled: p.pulled,
	}))(p.t)
}

// keepEffects adds the effects that the member's groups have counted.
func (p *pipeline) keepEffects() {
	for _, group := range []string{topics.Fanout, topics.Pools} {
		for name, n := range p.member.Status(group).Effects {
			p.effects[group+" "+name] += n
		}
	}
}

// expectEffects fails unless each of the effects was counted. Otherwise the test would not have covered its rule.
func (p *pipeline) expectEffects(names ...string) {
	p.t.Helper()
	p.keepEffects()
	for _, name := range names {
		expect.AtLeast(p.t, p.effects[name], 1, "%s in %v", name, p.effects)
	}
}

// apply publishes events and applies them to the product.
func (p *pipeline) apply(lines []schemas.Line) {
	p.t.Helper()
	must.OK(p.t, p.publisher.Publish(p.t.Context(), lines))
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
			got := must.Get(p.generator.Pool(p.t.Context(), user, source, 1000))(p.t)
			expect.NoDiffBut(p.t, cmpopts.EquateEmpty(), []schemas.PoolItem(got.Items), want, "%s: pool %s of %s", when, source, user)
			for i := range want {
				waiting[want[i].Pin] = true
			}
			compared += len(want)
		}
		expect.Equal(p.t, must.Get(p.generator.Waiting(p.t.Context(), user))(p.t), min(len(waiting), generator.MaxWaiting), "%s", when)
	}
	expect.AtLeast(p.t, compared, 1, "%s: compared candidates", when)
}

// worlds draws random worlds: each has a few users, boards, interests and pins with many events.
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
	const users, deletable = 5, 4 // the last user is deleted in some worlds, and no event of others refers to it
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
			if author != deletable && verb == schemas.Create {
				by = pick(w, author, w.rng.IntN(deletable)) // the earliest create determines the author
			}
			at := 30 + w.rng.IntN(20)
			facets := on(boards[at%len(boards)], interests[:at%3]...)
			w.lines = append(w.lines, pinEvent(at, user(by), verb, pin, facets))
		}
	}
	if w.rng.IntN(3) == 0 {
		w.lines = append(w.lines, userEvent(60, user(deletable), schemas.Delete))
	}
}

// parts cuts lines into n parts.
func parts(lines []schemas.Line, n int) [][]schemas.Line {
	size := (len(lines) + n - 1) / n
	return slices.Collect(slices.Chunk(lines, size))
}

// For any events in any order, with repeats and crashes, the final pools match the oracle: with every followee pushed,
// with every followee pulled, and if the configuration changes in between.
func TestPools_MatchOracle(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, test := range map[string]struct {
		configs []fanout.Config // used one after the other
		effects []string
		most    int // cap of followees; 0: the default, which no user reaches
	}{
		"push": {[]fanout.Config{fanoutConfig(never), fanoutConfig(never)}, nil, 0},
		"pull": {[]fanout.Config{fanoutConfig(0), fanoutConfig(0)}, []string{"fanout pulled", "fanout to_pull"}, 0},
		"push, with few followees": {
			[]fanout.Config{fanoutConfig(never), fanoutConfig(never)}, []string{"pools admitted_follows", "fanout inactive"}, 2,
		},
		"changed configuration": {
			[]fanout.Config{fanoutConfig(never), fanoutConfig(0), fanoutConfig(2), fanoutConfig(never), fanoutConfig(0), fanoutConfig(never)},
			[]string{"fanout pulled", "fanout to_pull", "fanout to_push"}, 0,
		},
		"changed configuration, with few followees": {
			[]fanout.Config{fanoutConfig(never), fanoutConfig(0), fanoutConfig(2), fanoutConfig(0), fanoutConfig(never)},
			[]string{"fanout pulled", "fanout to_pull", "fanout to_push", "pools admitted_follows"}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := pools.DefaultConfig()
			cfg.InactiveAfter = 0
			if test.most > 0 {
				cfg.MaxFollowees = test.most
			}
			p := newPipeline(t, cfg)
			for i, lines := range parts(newWorlds(seed, 8), len(test.configs)) {
				p.start(test.configs[i], i%2 == 1)
				p.apply(lines)
				if i%2 == 1 {
					p.compare(fmt.Sprintf("after part %d", i+1))
					// All earlier pins may have arrived before the edges. These pins arrive after edges and are
					// delivered to followers.
					p.apply(changes(fmt.Sprintf("%d-%d", seed, i), p.product))
					p.compare(fmt.Sprintf("after the changes of part %d", i+1))
				}
			}
			p.compare("at the end")
			p.expectEffects(test.effects...)
		})
	}
}

// reactivate announces that every user is active.
func (p *pipeline) reactivate() {
	for _, user := range p.product.Users() {
		proctest.Publish(p.Wire, p.Streams.UserActivity, string(user), &schemas.UserActivity{User: user, Time: schemas.MicrosOf(time.Now())})
	}
}

// Every user becomes inactive. The fan-out delivers withdrawals to them, but no new pins. After the reactivation, the pools
// match the oracle. The process is killed in between.
func TestPools_MatchOracleAfterReactivation(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, most := range map[string]int{"all followees": 0, "few followees": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testReactivation(t, seed, most)
		})
	}
}

func testReactivation(t *testing.T, seed uint64, most int) {
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter = time.Second
	if most > 0 {
		cfg.MaxFollowees = most
	}
	p := newPipeline(t, cfg)
	for i, lines := range parts(newWorlds(seed, 6), 3) {
		p.start([]fanout.Config{fanoutConfig(never), fanoutConfig(never), fanoutConfig(3)}[i], i > 0)
		p.apply(lines)
		p.WaitIdle()
		p.Eventually("every user is inactive", func() bool { return p.allInactive() })
		p.apply(changes(fmt.Sprintf("%d-%d", seed, i), p.product))
		p.WaitIdle()
		p.onlyVisible()
		p.reactivate()
		p.compare(fmt.Sprintf("part %d", i+1))
	}
	p.expectEffects("fanout inactive", "fanout deactivated", "fanout reactivated", "pools deactivated", "pools reactivated")
}

// Every user is inactive when InactiveAfter is set to 0. After the reactivation, the pools have the pins published in the
// meantime and later ones.
func TestPools_MatchOracleAfterInactivityIsDisabled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter = time.Second
	p := newPipeline(t, cfg)
	p.start(fanoutConfig(never), false)
	p.apply(newWorlds(seed, 4))
	p.WaitIdle()
	p.Eventually("every user is inactive", func() bool { return p.allInactive() })
	p.apply(changes(fmt.Sprintf("%d-before", seed), p.product))
	p.WaitIdle()
	p.pools.InactiveAfter = 0
	p.start(fanoutConfig(never), false)
	p.reactivate()
	p.compare("after the reactivation")
	p.apply(changes(fmt.Sprintf("%d-after", seed), p.product))
	p.compare("after later changes")
	p.expectEffects("fanout inactive", "pools deactivated", "pools reactivated")
}

// allInactive reports whether every user with a followee is inactive, and every followee was notified.
func (p *pipeline) allInactive() bool {
	for _, user := range p.product.Users() {
		for _, e := range p.product.Edges(user) {
			if e.Kind == schemas.FollowEdge && e.Live && !p.product.deleted(schemas.UserID(e.Other)) && !p.isInactive(user, e.Other) {
				return false
			}
		}
	}
	return true
}

// isInactive reports whether the rows of fanout mark the edge of the user as inactive.
func (p *pipeline) isInactive(user schemas.UserID, followee schemas.ID) bool {
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

// changes returns a new pin by each user, and a deletion or another board for some existing pins.
func changes(name string, product *Product) []schemas.Line {
	var lines []schemas.Line
	for i, user := range product.Users() {
		pin := schemas.ID(fmt.Sprintf("pin:new-%s-%d", name, i))
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
			got := must.Get(p.generator.Pool(p.t.Context(), user, source, 1000))(p.t)
			for _, item := range got.Items {
				if !p.product.Visible(user, source, item.Pin) {
					p.t.Errorf("the pool %[3]s of the inactive user %[1]s contains %[2]s, which is hidden", user, item.Pin, source)
				}
			}
		}
	}
}
