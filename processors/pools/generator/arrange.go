package generator

import (
	"context"
	"slices"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// arrange applies the rules of the feed. It reports whether the stages must run again with other candidates:
//
//   - Looking up every candidate among the seen pins would cost more than the rest of the chunk. Therefore filter omits only
//     recently shown pins, and arrange looks up only the pins that the rules choose or draw from, and the best pins, which the rules
//     compare the others with. If any of these was seen, filter must omit all seen pins.
//   - Most chunks are full without popular pins. A short one needs them, and many of them were seen.
func (g *Generator) arrange(ctx context.Context, c *composition) (again bool, err error) {
	visit := rules.Visit{User: c.User, Time: c.Time, Limit: c.Limit, Memory: c.memory}
	visit, result := g.applyRules(c, visit)
	c.result = &result
	if !c.exact {
		seen, err := g.seen(ctx, c.User, append(chosenBy(&result), c.bestOfPools()...))
		if err != nil {
			return false, err
		}
		if len(seen) > 0 {
			c.exact = true
			c.memory.Deferred = slices.DeleteFunc(slices.Clone(c.memory.Deferred), func(d schemas.Deferred) bool { return seen[d.Pin] })
			return true, nil
		}
	}
	_, offered := c.offers[schemas.FromPopular]
	if !offered && len(result.Items) < visit.Limit && c.rules.Fills(schemas.FromPopular) && g.offerPopular(c) {
		c.exact = true
		return true, nil
	}
	if c.isLogged && len(result.Items) > 0 {
		c.logged = g.log(c, visit)
	}
	if !c.Peek {
		g.metrics.composed(c)
	}
	return false, nil
}

// maxShownBytes bounds the encoded items of a chunk. The items go into a Served and into a FeedEntries, which is also a row:
//
//   - A FeedEntries must not exceed rows.Config.MaxValueBytes, which is at least 512 KiB.
//   - A Served must not exceed schemas.MaxRecordBytes, 1 MiB. It also has up to rules.MaxDeferred deferred and as many expired
//     pins, about 110 KB together, two numbers for each source, and the log of the visit, at most maxLoggedBytes.
//
// 448 KiB are 26 items with the longest facets of an event, or all 100 items of a visit with facets of 4 KB each.
const maxShownBytes = 448 << 10

// applyRules returns the result of the rules, and the visit with the final limit. If the items exceed maxShownBytes, it applies
// the rules again with a lower limit. It never removes an item from a result, so the shares and the deferred pins of the
// result match the shown items. The other candidates wait for the next visit.
func (g *Generator) applyRules(c *composition, visit rules.Visit) (rules.Visit, rules.Chunk) {
	for {
		result := c.rules.Make(visit, g.deps.Extensions.admitted(c), c.signals)
		n := fitting(result.Items)
		if n == len(result.Items) {
			return visit, result
		}
		visit.Limit = n
	}
}

// fitting returns the number of first items that fit in maxShownBytes, at least one if there is one.
func fitting(items []schemas.ServedItem) int {
	size := 0
	for i := range items {
		if size += items[i].MaxEncodedBytes(); size > maxShownBytes && i > 0 {
			return i
		}
	}
	return len(items)
}

// chosenBy returns the pins that a chunk shows, draws from or defers, and the weak pins within the budget.
func chosenBy(c *rules.Chunk) []schemas.PinID {
	list := append(make([]schemas.PinID, 0, len(c.Items)+len(c.Memory.Deferred)+len(c.Weak)+len(c.Options)), c.Weak...)
	list = append(list, c.Options...)
	for i := range c.Items {
		list = append(list, c.Items[i].Pin)
	}
	for _, d := range c.Memory.Deferred {
		list = append(list, d.Pin)
	}
	return list
}

// bestOfPools returns the best pin of each pool.
func (c *composition) bestOfPools() []schemas.PinID {
	var list []schemas.PinID
	for _, p := range c.pools {
		if len(p.Candidates) > 0 {
			list = append(list, p.Candidates[0].Pin)
		}
	}
	return list
}

// seen returns the pins that the user was shown.
func (g *Generator) seen(ctx context.Context, user schemas.UserID, pins []schemas.PinID) (map[schemas.PinID]bool, error) {
	seen := map[schemas.PinID]bool{}
	err := g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) error {
		for _, pin := range pins {
			value, err := s.Get(layout.RowName(layout.KindSeen, pin))
			if err != nil {
				return err
			}
			if value != nil {
				seen[pin] = true
			}
		}
		return nil
	})
	return seen, err
}
