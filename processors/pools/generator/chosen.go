package generator

import (
	"context"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxShownBytes bounds the encoded items of a chunk. The items go into a Served and into a FeedEntries, which is also a row:
//
//   - A FeedEntries must not exceed rows.Config.MaxValueBytes, which is at least 512 KiB.
//   - A Served must not exceed schemas.MaxRecordBytes, 1 MiB. It also has up to rules.MaxDeferred deferred and as many expired
//     pins, about 110 KB together, two numbers for each source, and the log of the visit, about 180 KB and maxChoiceBytes.
//
// 448 KiB are 26 items with the longest facets of an event, or all 100 items of a visit with facets of 4 KB each.
const maxShownBytes = 448 << 10

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
			value, err := s.Get(rows.Name(layout.KindSeen, pin))
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
