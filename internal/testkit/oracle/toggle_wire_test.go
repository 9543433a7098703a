package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Followers toggle far beyond the immediate backfills while pins are published, in any order, and the process is killed.
// After the interval every pool is that of the oracle.
func TestPools_ConvergeAfterBackfillsWereDeferred(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 13))
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter = 0
	p := newPipeline(t, cfg)
	rules := rules(never)
	rules.BackfillInterval = time.Hour
	var lines []schemas.Line
	user := func(n int) schemas.UserID { return schemas.UserID(fmt.Sprintf("user:%d", n)) }
	for fan := range 3 {
		for author := 3; author < 5; author++ {
			for i := range 30 + rng.IntN(2) { // ends with a follow or an unfollow
				verb := []schemas.Verb{schemas.Follow, schemas.Unfollow}[i%2]
				lines = append(lines, edgeEvent(fan*1000+i, user(fan), verb, schemas.ID(user(author))))
			}
		}
	}
	var news []schemas.Line
	for n := range 40 {
		pin := schemas.ID(fmt.Sprintf("pin:%d", n))
		news = append(news, pinEvent(10_000+n, user(3+n%2), schemas.Create, pin))
		if n%5 == 0 {
			news = append(news, pinEvent(20_000+n, user(3+n%2), schemas.Delete, pin))
		}
	}
	rng.Shuffle(len(news), func(i, j int) { news[i], news[j] = news[j], news[i] })
	for _, line := range news { // between the follows, whose order is kept: in random order most of them have no effect
		lines = slices.Insert(lines, rng.IntN(len(lines)+1), line)
	}
	for i, part := range parts(lines, 12) {
		if i%4 == 0 {
			p.start(rules, i > 0)
		}
		p.tell(part)
		p.WaitIdle() // otherwise the pins may arrive after all follows
	}
	for author := 3; author < 5; author++ {
		p.Tick(topics.Fanout, string(user(author)), time.Now().Add(2*time.Hour))
	}
	p.compare("after the interval")
	p.expectEffects("fanout deferred_backfills")
}
