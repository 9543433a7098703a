package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// While deliveries are not applied, a walk of several steps cannot finish, and ten thousand publications wait for it. The
// queue must stay within a few times its cap. At the end, every pool holds the best of all pins.
func TestQueue_IsBoundedWhileDeliveriesAreHeld(t *testing.T) {
	t.Parallel()
	const followers, pins, most, author = 5, 10_000, 20, "user:author"
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter, cfg.MaxCandidates = 0, most
	p := newPipeline(t, cfg)
	rules := fanoutConfig(never)
	rules.MaxRecentPublications = 2 * most
	member := p.Start("fanout", fanout.Group(rules, p.Kafka.Partitions, p.Streams, p.deleted))
	var lines []schemas.Line
	for n := range followers {
		lines = append(lines, edgeEvent(n, schemas.UserID(fmt.Sprintf("user:%d", n)), schemas.Follow, author))
	}
	p.apply(lines)
	p.WaitIdle()
	rng := rand.New(rand.NewPCG(15, 1))
	var all []*schemas.Publication
	for _, n := range rng.Perm(pins) {
		at := schemas.Micros(1_700_000_000_000_000 + n*1_000_000)
		facets := schemas.Facets{Author: author}
		pub := &schemas.Publication{Followee: author, PinVersion: schemas.PinVersion{
			Pin: schemas.PinID(fmt.Sprintf("pin:%d", n)), Version: schemas.Version(at), PinContent: schemas.PinContent{Created: at, Facets: facets}, Quality: 1,
		}}
		if all = append(all, pub); n%10 == 0 { // the pin is deleted later
			gone := *pub
			gone.Version++
			gone.Deleted = true
			all = append(all, &gone)
		}
	}
	proctest.Publish(p.Wire, p.Streams.Publications, author, all...)
	p.WaitIdle()
	queued := len(p.RowsOfKind(topics.Fanout, author, 'q'))
	if dropped := member.Status(topics.Fanout).Dropped["queue_cap"]; queued > 20*rules.MaxRecentPublications || dropped == 0 {
		t.Errorf("%d walks are queued and %d were dropped, want at most a few times %d queued, and the others dropped", queued, dropped, rules.MaxRecentPublications)
	}

	var want []schemas.PinID
	for n := pins - 1; len(want) < most; n-- {
		if n%10 > 0 {
			want = append(want, schemas.PinID(fmt.Sprintf("pin:%d", n)))
		}
	}
	p.attach(p.Start("pools", pools.Group(cfg, p.Streams, p.deleted)))
	p.WaitIdle()
	for n := range followers {
		user := schemas.UserID(fmt.Sprintf("user:%d", n))
		p.Eventually("the rows of "+string(user), func() bool { return p.member.Owns(topics.Pools, string(user)) })
		pool := must.Get(p.generator.Pool(t.Context(), user, schemas.Following, most))(t)
		got := convert.All(pool.Items, func(item schemas.PoolItem) schemas.PinID { return item.Pin })
		expect.NoDiff(t, got, want, "pool of %s", user)
	}
}
