package generator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// order is a chunk request with the rules that apply to it.
type order struct {
	schemas.ChunkRequest
	feed   rules.Feed
	arm    string // experiment arm; "": none
	offers offers // candidates of external sources
}

// served returns the Served of an order, without items.
func (o *order) served() schemas.Served {
	return schemas.Served{ID: o.Served, User: o.User, Time: o.Time, Feed: o.Feed, Arm: o.arm}
}

// Reasons why a chunk is degraded.
const (
	degradedReturning  = "returning"  // some followees have not yet delivered the backfill for a reactivated user
	degradedAffinities = "affinities" // the affinities of the user cannot be read
	degradedPulled     = "pulled"     // the pins of pulled followees are not loaded yet
	degradedItems      = "items"      // the counts of impressions and saves are not loaded yet
	degradedModel      = "model"      // the external model did not answer
	degradedSource     = "source:"    // prefix of the name of an external source that did not answer
)

// material is the input of a chunk.
type material struct {
	pools    []rules.Pool
	known    rules.Known
	memory   schemas.Memory
	away     bool // the user is inactive; only head is set
	head     int64
	graph    visibility.Graph
	announce bool
	degraded []string
}

// compose builds the chunk once the partition is ready. It releases the row snapshot before it applies the rules, because an
// open snapshot blocks the partition.
func (g *Generator) compose(ctx context.Context, o order) (*schemas.Chunk, error) {
	if g.deps.Deleted.Has(o.User) {
		return &schemas.Chunk{Served: o.served(), Recent: []schemas.FeedEntry{}}, nil
	}
	o.offers = g.external.ask(ctx, &o)
	m, err := g.collect(ctx, o)
	if err != nil {
		return nil, err
	}
	if m.away {
		return &schemas.Chunk{Served: o.served(), Head: m.head, Floor: g.floor(m.head), Away: true}, nil
	}
	g.external.score(ctx, &o, m)
	made, err := g.make(ctx, o, m)
	if err != nil {
		return nil, err
	}
	g.metrics.note(o, &made)
	served := o.served()
	served.Items, served.Memory, served.Expired = made.Items, made.Memory, made.Expired
	return &schemas.Chunk{
		Served: served, Head: m.head, Floor: g.floor(m.head), Degraded: m.degraded, Announce: m.announce,
		Recall: func(ctx context.Context) ([]schemas.FeedEntry, error) { return g.recall(ctx, o.User, m) },
	}, nil
}

// make applies the rules. Looking up every candidate among the seen pins would cost more than the rest of the chunk.
// Therefore:
//
//   - The material leaves out recently shown pins, which are nearly all seen pins that the pools still contain.
//   - make looks up only the pins that the rules choose and those that they compare the others with.
//   - If any of these was seen, make filters all pools exactly and applies the rules again.
func (g *Generator) make(ctx context.Context, o order, m *material) (rules.Chunk, error) {
	visit := rules.Visit{User: o.User, Time: o.Time, Limit: o.Limit, Memory: m.memory}
	apply := func(v rules.Visit) rules.Chunk {
		return o.feed.Make(v, g.deps.Extensions.admitted(o.User, o.Feed, m.pools), m.known)
	}
	_, made := fit(visit, apply)
	seen, err := g.seen(ctx, o.User, append(chosenBy(&made), m.tops()...))
	if err != nil || len(seen) == 0 {
		return made, err
	}
	if err := g.exactly(ctx, o.User, o.feed, o.offers, m); err != nil {
		return rules.Chunk{}, err
	}
	visit.Memory.Deferred = slices.DeleteFunc(slices.Clone(m.memory.Deferred), func(d schemas.Deferred) bool { return seen[d.Pin] })
	_, made = fit(visit, apply)
	return made, nil
}

// chosenBy returns the pins that a chunk shows, defers, or prefers to pins that it holds back.
func chosenBy(c *rules.Chunk) []schemas.PinID {
	list := append(make([]schemas.PinID, 0, len(c.Items)+len(c.Memory.Deferred)+len(c.Weak)), c.Weak...)
	for i := range c.Items {
		list = append(list, c.Items[i].Pin)
	}
	for _, d := range c.Memory.Deferred {
		list = append(list, d.Pin)
	}
	return list
}

// tops returns the best pin of each pool.
func (m *material) tops() []schemas.PinID {
	var list []schemas.PinID
	for _, p := range m.pools {
		if len(p.Candidates) > 0 {
			list = append(list, p.Candidates[0].Pin)
		}
	}
	return list
}

// seen returns those of the pins that the user was shown.
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

// floor returns the trim position: the feed store keeps no entries at or below it.
func (g *Generator) floor(head int64) int64 { return max(0, head-int64(g.cfg.FeedMax)) }

// collect reads the material when the partition is ready and the backfills of a reactivated user have arrived or timed out.
func (g *Generator) collect(ctx context.Context, o order) (*material, error) {
	patience := g.deps.Now().Add(g.welcome(ctx))
	for {
		changed := g.deps.Rows.Changed(string(o.User))
		var m *material
		var at session
		err := g.read(ctx, o.User, func(v *reader, s rows.Snapshot) (err error) {
			if at = g.session(s); at.ready {
				m, err = g.receive(v, o, patience)
			}
			return err
		})
		if err != nil || m != nil {
			return m, err
		}
		if !at.asked {
			err = g.begin(ctx, at)
		} else {
			err = g.await(ctx, patience, changed, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("wait for all of %s: %w", topics.Served, err)
		}
	}
}

// welcome returns how long a chunk waits for backfills. It reserves a quarter of the time that ctx has left for the other
// steps.
func (g *Generator) welcome(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(g.cfg.ReactivationTimeout, time.Until(deadline)*3/4)
	}
	return g.cfg.ReactivationTimeout
}

// receive reads the material. It returns nil while a reactivated user's backfills are expected. The material of an inactive
// user contains only the head.
func (g *Generator) receive(v *reader, o order, patience time.Time) (*material, error) {
	p, err := layout.ReadActivity(v)
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &layout.Activity{LastSeen: o.Time}
	}
	// With AwayAfter 0, visits are not recorded. Only the visit of a user who is already inactive must be announced.
	if g.pools.AwayAfter == 0 {
		p.LastSeen = o.Time
	}
	if p.Inactive && !o.Returned {
		return &material{away: true, head: v.State.Head}, nil
	}
	expecting := p.Inactive || p.IsBackfilling()
	if expecting && g.deps.Now().Before(patience) {
		return nil, nil
	}
	if err := v.LoadRecentlySeen(g.pools.Frozen); err != nil {
		return nil, err
	}
	m, err := g.gather(v, o.feed, o.offers)
	if err != nil {
		return nil, err
	}
	if expecting {
		m.degraded = append(m.degraded, degradedReturning)
	}
	m.announce = o.Time.Time().Sub(p.LastSeen.Time()) > g.pools.AwayAfter/30
	return m, nil
}

// gather reads what the rules of a feed need, and merges the candidates of external sources into the pools.
func (g *Generator) gather(v *reader, feed rules.Feed, o offers) (*material, error) {
	m := &material{memory: v.State.Memory, head: v.State.Head, graph: v.Viewer.Graph, degraded: o.degraded}
	if g.unread() != nil {
		m.degraded = append(m.degraded, degradedPulled)
	}
	list, err := v.sourcesWith(o)
	if err != nil {
		return nil, err
	}
	for _, source := range list {
		all, err := v.pool(source, g.cfg.Head)
		if err == nil && len(o.by[source]) > 0 {
			all, err = g.beside(v, source, all, o.by[source])
		}
		if err != nil {
			return nil, err
		}
		m.pools = append(m.pools, rules.Pool{Source: source, Candidates: candidatesOf(all)})
	}
	if err := g.know(m, v, feed); err != nil {
		return nil, err
	}
	return m, nil
}

// beside merges the offered candidates of a source into its pool.
func (g *Generator) beside(v *reader, source schemas.Source, pool, offered []layout.Candidate) ([]layout.Candidate, error) {
	rest := offered
	shown, err := v.Best(source, nil, func() *layout.Candidate {
		if len(rest) == 0 {
			return nil
		}
		c := &rest[0]
		rest = rest[1:]
		return c
	}, len(offered))
	if err != nil {
		return nil, err
	}
	all := bestOfEach(append(pool, shown...))
	return all[:min(len(all), g.cfg.Head)], nil
}

func candidatesOf(all []layout.Candidate) []rules.Candidate {
	list := make([]rules.Candidate, len(all))
	for i := range all {
		c := &all[i]
		list[i] = rules.Candidate{Pin: c.Pin, Score: c.Score, Created: c.Created, Facets: c.Facets}
	}
	return list
}

// know adds the signals that the feed uses, other than the pools. It records missing ones as degraded.
func (g *Generator) know(m *material, t layout.Table, feed rules.Feed) error {
	if feed.Affinity > 0 {
		if err := g.knowAffinities(m, t); err != nil {
			return err
		}
	}
	if feed.Popularity > 0 || feed.Shares[schemas.Explore] > 0 {
		if g.deps.Hot == nil || !g.deps.Hot.Ready() {
			m.degraded = append(m.degraded, degradedItems)
		} else {
			m.known.Counts = g.deps.Hot
		}
	}
	return nil
}

// knowAffinities adds the affinities of the user, unless they are already known.
func (g *Generator) knowAffinities(m *material, t layout.Table) error {
	value, err := t.Get([]byte{layout.KindAffinities})
	if err != nil || value == nil || m.known.Affinities != nil || slices.Contains(m.degraded, degradedAffinities) {
		return err
	}
	a, err := g.deps.Streams.Affinities.Decode(value)
	if err != nil { // the record has another schema version, and the registry is unavailable
		m.degraded = append(m.degraded, degradedAffinities)
		return nil
	}
	m.known.Affinities = a.Top
	return nil
}

// recall returns the user's newest materialized entries, newest first, as of when the material was read. Each entry added
// since then removes the oldest one. Entries that the user may no longer see are empty, like swept entries in the store:
// callers use the recalled entries when no store can report whether they are visible.
func (g *Generator) recall(ctx context.Context, user schemas.UserID, m *material) (list []schemas.FeedEntry, err error) {
	err = g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) (err error) {
		list, err = g.recent(s, m.head)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("recall what %s was shown: %w", user, err)
	}
	viewer := visibility.NewViewer(user, m.graph, g.deps.Deleted)
	for i := range list {
		it := &list[i].ServedItem
		if viewer.Hides(&visibility.Pin{Facets: it.Facets}, visibility.ShownEdges(it)) != "" {
			*it = schemas.ServedItem{}
		}
	}
	return list, nil
}

func (g *Generator) recent(t layout.Table, head int64) ([]schemas.FeedEntry, error) {
	list, err := materializedFrom(t, g.deps.Streams.FeedEntries, head, g.pools.Frozen)
	if err != nil {
		return nil, fmt.Errorf("read frozen entries: %w", err)
	}
	return list, nil
}
