package generator

import (
	"context"
	"slices"

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
