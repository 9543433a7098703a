package generator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// Chunk selects and arranges the items of a visit. If the user has an earlier chunk in flight, Chunk waits until its Served
// is applied or has failed, or until ctx ends. After the user's partition moved from another process, Chunk also waits for each
// chunk of that process: until it is applied or can no longer be shown as new. See Config.HandoverWait.
//
// A caller that gets a chunk with items must start to publish its Served within ten seconds, or not publish it at all. It
// must report the outcome with Settle. Without that, the user's next chunk waits for the delivery timeout of the producer. A
// chunk without items needs neither, and neither does a peek.
//
// Chunk returns a *rows.NotOwnerError if this process does not own the user's partition. It may also return an error that
// wraps schemas.ErrUnknownFeed, the error of ctx, or a read error.
func (g *Generator) Chunk(ctx context.Context, req schemas.ChunkRequest) (*schemas.Chunk, error) {
	c, err := g.newComposition(req)
	if err = cmp.Or(checkServed(req), err); err == nil {
		err = g.composeNext(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
	return g.chunk(c), nil
}

// composeNext composes the chunk after those that the user has in flight, and reserves its pins. A peek reserves none.
func (g *Generator) composeNext(ctx context.Context, c *composition) error {
	if !c.Peek {
		start := time.Now()
		defer func() { g.metrics.seconds.Observe(time.Since(start).Seconds()) }()
	}
	if err := g.awaitPrevious(ctx, c.User, c.Served); err != nil {
		return fmt.Errorf("wait for the previous visit: %w", err)
	}
	if err := g.compose(ctx, c); err != nil {
		g.reservations.release(c.User, c.Served)
		return err
	}
	g.reserve(c)
	return nil
}

// checkServed returns an error unless a visit has an id and a peek has none.
func checkServed(req schemas.ChunkRequest) error {
	switch {
	case req.Peek && req.Served != "":
		return fmt.Errorf("served: %q: want none for a peek", req.Served)
	case !req.Peek && req.Served == "", len(req.Served) > schemas.MaxEventIDBytes:
		return fmt.Errorf("served: %q: want 1 to %d bytes", req.Served, schemas.MaxEventIDBytes)
	}
	return nil
}

// composition is a chunk from the request to the result. Each stage fills in its part.
type composition struct {
	schemas.ChunkRequest
	feeds    *rules.Feeds // the rules of all feeds
	rules    rules.Feed
	arm      string // experiment arm; "": none
	isLogged bool   // the user is sampled

	// gather
	offers   map[schemas.Source][]layout.Candidate // of external sources, and popular pins; best first, each pin once
	memory   schemas.Memory
	head     int64 // highest position of the materialized feed
	graph    visibility.Graph
	signals  rules.Signals
	inactive bool // the user is inactive: the chunk is not composed
	repeated bool // an earlier attempt of the visit is applied: the chunk is not composed
	announce bool
	degraded []string

	exact  bool         // filter omits all seen pins, not only recent ones
	pools  []rules.Pool // filter
	result *rules.Chunk // arrange; nil: not composed, or not yet

	inferred *inferred            // of the model, if the visit is logged
	logged   *schemas.LoggedVisit // arrange; nil: the visit is not logged
}

// newComposition looks up the rules of the feed. It returns an error that wraps schemas.ErrUnknownFeed, or one for a limit out
// of range.
func (g *Generator) newComposition(req schemas.ChunkRequest) (*composition, error) {
	const maxLimit = 100
	feeds := g.feeds.Load()
	feed, arm, ok := feeds.For(req.Feed, req.User)
	if !ok {
		return nil, fmt.Errorf("feed %q: %w", req.Feed, schemas.ErrUnknownFeed)
	}
	if req.Limit < 1 || req.Limit > maxLimit {
		return nil, fmt.Errorf("limit: %d: want 1 to %d", req.Limit, maxLimit)
	}
	isLogged := !req.Peek && schemas.Sampled(string(req.User), g.cfg.VisitLogShare)
	return &composition{ChunkRequest: req, feeds: feeds, rules: feed, arm: arm, isLogged: isLogged}, nil
}

// Reasons why a chunk is degraded.
const (
	degradedReactivating = "reactivating" // some followees have not delivered the backfill for a reactivated user
	degradedAffinities   = "affinities"   // the affinities of the user cannot be read
	degradedPulled       = "pulled"       // the pins of pulled followees are not loaded yet
	degradedPopular      = "popular"      // the popular pins are not loaded yet
	degradedItems        = "items"        // the counts of impressions and saves are not loaded yet
	degradedEmbeddings   = "embeddings"   // the embeddings of pins cannot be read, so similar ones may be adjacent
	degradedModel        = "model"        // the external model did not answer
	degradedSource       = "source:"      // prefix of the name of an external source that did not answer
)

// degrade records a reason, once.
func (c *composition) degrade(reason string) {
	if !slices.Contains(c.degraded, reason) {
		c.degraded = append(c.degraded, reason)
	}
}

// compose runs the stages up to arrange. If arrange needs other candidates, the stages run again, but no external service is called
// again. compose does nothing for a deleted user.
func (g *Generator) compose(ctx context.Context, c *composition) error {
	if g.deps.Deleted.Has(c.User) {
		return nil
	}
	g.gatherOffers(ctx, c)
	for deadline, again := g.backfillDeadline(ctx), true; again; {
		err := g.readWhenReady(ctx, c.User, deadline, func(v *view) (bool, error) { return g.gather(c, v, deadline) })
		if err != nil || c.inactive || c.repeated {
			return err
		}
		g.score(ctx, c)
		g.gatherEmbeddings(ctx, c)
		if again, err = g.arrange(ctx, c); err != nil {
			return err
		}
	}
	return ctx.Err() // the caller may have stopped waiting
}

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

// chunk returns the response for a composition.
func (g *Generator) chunk(c *composition) *schemas.Chunk {
	chunk := &schemas.Chunk{
		Served:   schemas.Served{ID: c.Served, User: c.User, Time: c.Time, Feed: c.Feed, Arm: c.arm},
		Head:     c.head,
		Degraded: c.degraded, Inactive: c.inactive, Announce: c.announce,
	}
	if c.rules.Seen == rules.Reported {
		chunk.Served.ReportWithin = c.rules.ReportTimeout.Microseconds()
	}
	if c.result == nil && !c.repeated {
		chunk.Recent = []schemas.FeedEntry{}
		return chunk
	}
	if c.result != nil {
		chunk.Served.Items, chunk.Served.Memory, chunk.Served.Expired = c.result.Items, c.result.Memory, c.result.Expired
		chunk.Served.Logged = c.logged
	}
	chunk.ReadRecent = func(ctx context.Context) ([]schemas.FeedEntry, error) { return g.recall(ctx, c) }
	return chunk
}
