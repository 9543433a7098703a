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

// Followers follow and unfollow repeatedly, beyond the number of immediate backfills, while pins are published in random
// order and the process is killed. After the backfill interval, every pool matches the oracle.
func TestPools_ConvergeAfterDeferredBackfills(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 13))
	cfg := pools.DefaultConfig()
	cfg.InactiveAfter = 0
	p := newPipeline(t, cfg)
	rules := fanoutConfig(never)
	rules.BackfillInterval = time.Hour
	var lines []schemas.Line
	user := func(n int) schemas.UserID { return schemas.UserID(fmt.Sprintf("user:%d", n)) }
	for fan := range 3 {
		for author := 3; author < 5; author++ {
			toggles := 30 + rng.IntN(2) // ends with an unfollow or a follow
			if fan == 0 {
				toggles = 31 // one user follows at the end, so that there are candidates to compare
			}
			for i := range toggles {
				verb := []schemas.Verb{schemas.Follow, schemas.Unfollow}[i%2]
				lines = append(lines, edgeEvent(fan*1000+i, user(fan), verb, schemas.ID(user(author))))
			}
		}
	}
	var pins []schemas.Line
	for n := range 40 {
		pin := schemas.ID(fmt.Sprintf("pin:%d", n))
		pins = append(pins, pinEvent(10_000+n, user(3+n%2), schemas.Create, pin))
		if n%5 == 0 {
			pins = append(pins, pinEvent(20_000+n, user(3+n%2), schemas.Delete, pin))
		}
	}
	rng.Shuffle(len(pins), func(i, j int) { pins[i], pins[j] = pins[j], pins[i] })
	for _, line := range pins { // insert between the follows; keep their order, because in random order most have no effect
		lines = slices.Insert(lines, rng.IntN(len(lines)+1), line)
	}
	for i, part := range parts(lines, 12) {
		if i%4 == 0 {
			p.start(rules, i > 0)
		}
		p.apply(part)
		p.WaitIdle() // otherwise the pins may arrive after all follows
	}
	for author := 3; author < 5; author++ {
		p.Tick(topics.Fanout, string(user(author)), time.Now().Add(2*time.Hour))
	}
	p.compare("after the interval")
	p.expectEffects("fanout deferred_backfills")
}
