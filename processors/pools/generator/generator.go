// Package generator composes the chunks for visits. It reads the rows of the group pools and writes none: the Served that a
// visit publishes contains the new state, and the group applies it to the rows.
//
// A chunk is composed in these steps:
//
//  1. awaitPrevious waits until the Served of the user's previous visit is applied or has failed (reserve.go).
//  2. gatherOffers requests the candidates of external sources (external.go).
//  3. readWhenReady waits until this process may read the user's rows (session.go). On one snapshot of them, gather reads the
//     signals for the rules. Then filterRecent reads the best candidates of each source that the user may be shown (gather.go).
//  4. score requests the scores of the external model (score.go), and gatherEmbeddings the embeddings for the spacing of similar
//     pins (embeddings.go).
//  5. arrange applies the rules of the feed and checks the chosen pins (arrange.go, package rules). If the chunk is short, it
//     adds the popular pins and applies the rules again.
//  6. reserve keeps the pins from other chunks until the outcome of the visit is known (reserve.go).
//
// A peek takes the same steps except the last, so it returns the chunk of the next visit.
//
// # Partitions that move
//
// Only the process that owns the user's partition composes chunks. A new owner first applies every Served that visits with a
// chunk of the previous owner may publish; see session.go.
//
// # Performance
//
// An open snapshot of the rows blocks the partition. Therefore external services are called and rules are applied without
// one.
package generator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Rows reads the committed rows of the partitions that this process owns. *rows.View implements it.
type Rows interface {
	Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error
	Changed(owner string) <-chan struct{}
}

// Deps are the dependencies of a generator.
type Deps struct {
	Rows       Rows
	End        LogEnd // end of the topic served
	Streams    *topics.Streams
	Deleted    layout.DeletedUsers
	Pulled     *Pulled               // nil: no followee is pulled
	Hot        *Hot                  // nil: no counts
	Popular    *Popular              // nil: no pin is popular
	Features   Features              // nil: the model receives none
	Embeddings Embeddings            // nil: feeds with spacing are degraded
	Dial       external.Dial         // connects to external sources and the model; nil: any address
	Extensions Extensions            // sources, scores and rules of the embedding program
	Metrics    prometheus.Registerer // nil: not registered
	Now        func() time.Time      // nil: time.Now
}

// Generator composes chunks from the candidates of users whose partition this process owns. It is safe for concurrent use.
type Generator struct {
	pools        layout.Config
	cfg          Config
	deps         Deps
	metrics      metrics
	external     *externalCalls
	vectors      *vectors
	feeds        atomic.Pointer[rules.Feeds] // with the shares of external sources; a composition reads it once
	reservations reservations
	buffers      sync.Pool // of *layout.Buffers

	mu       sync.Mutex
	sessions map[int32]session // by partition
}

// New returns a generator that reads the pools of a group with the configuration pools. Both configurations must be valid. It
// returns an error if deps.Extensions is invalid or if a metric cannot be registered. The caller must call Close.
func New(pools layout.Config, cfg Config, deps Deps) (*Generator, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Embeddings == nil {
		deps.Embeddings = func(context.Context, []schemas.PinID) (map[schemas.PinID][]float32, error) {
			return nil, errors.New("this process has no embeddings")
		}
	}
	if err := deps.Extensions.validate(cfg); err != nil {
		return nil, fmt.Errorf("generator: extension %w", err)
	}
	if deps.Features == nil && cfg.Model.UsesFeatures() {
		return nil, errors.New("generator: model.features: this process has no features")
	}
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("generator: register metrics: %w", err)
	}
	g := &Generator{
		pools: pools, cfg: cfg, deps: deps, metrics: m, external: newExternalCalls(cfg, deps),
		vectors:      newVectors(cfg.Embeddings, deps.Embeddings, deps.Now),
		reservations: reservations{users: map[schemas.UserID]*reservation{}}, sessions: map[int32]session{},
		buffers: sync.Pool{New: func() any { return new(layout.Buffers) }},
	}
	g.SetFeeds(cfg.Feeds)
	return g, nil
}

// SetFeeds replaces the rules of all feeds, which must be valid. A chunk has either all previous rules or all new ones.
func (g *Generator) SetFeeds(feeds rules.Feeds) {
	feeds = g.cfg.withShares(feeds, g.deps.Extensions)
	g.feeds.Store(&feeds)
}

// Close closes the connections. No other call may be in flight.
func (g *Generator) Close() { g.external.close() }

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
	if err != nil {
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
	if err := checkServed(req); err != nil {
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
	if !req.Peek {
		start := time.Now()
		defer func() { g.metrics.seconds.Observe(time.Since(start).Seconds()) }()
	}
	if err := g.awaitPrevious(ctx, req.User, req.Served); err != nil {
		return nil, fmt.Errorf("chunk for %s: wait for the previous visit: %w", req.User, err)
	}
	if err := g.compose(ctx, c); err != nil {
		g.reservations.release(req.User, req.Served)
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
	g.reserve(c)
	return g.chunk(c), nil
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
	rules    rules.Feed
	arm      string  // experiment arm; "": none
	armShare float64 // probability of the arm, if the visit is logged
	isLogged bool    // the user is sampled

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

	pools  []rules.Pool // filter, and the scores of the model in signals
	result *rules.Chunk // arrange; nil: not composed

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
	c := &composition{ChunkRequest: req, rules: feed, arm: arm, isLogged: !req.Peek && schemas.Sampled(string(req.User), g.cfg.VisitLogShare)}
	if c.isLogged {
		c.armShare = feeds.ArmShare(req.Feed, arm)
	}
	return c, nil
}

func (c *composition) degrade(reasons ...string) { c.degraded = append(c.degraded, reasons...) }

// compose runs the stages up to arrange. It composes nothing for a deleted user.
func (g *Generator) compose(ctx context.Context, c *composition) error {
	if g.deps.Deleted.Has(c.User) {
		return nil
	}
	g.gatherOffers(ctx, c)
	err := g.readWhenReady(ctx, c.User, g.backfillDeadline(ctx), func(v *view, deadline time.Time) (done bool, err error) {
		if c.repeated = v.State.AppliedAttempt(c.Attempts); c.repeated {
			c.head, c.graph = v.State.Head, v.Viewer.Graph
			return true, nil
		}
		if done, err = g.gatherActivity(c, v, deadline); err != nil || !done || c.inactive {
			return done, err
		}
		if err := g.gather(c, v); err != nil {
			return false, err
		}
		return true, g.filterRecent(c, v)
	})
	if err != nil || c.inactive || c.repeated {
		return err
	}
	g.score(ctx, c)
	g.gatherEmbeddings(ctx, c)
	if err := g.arrange(ctx, c); err != nil {
		return err
	}
	return ctx.Err() // the caller may have stopped waiting
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

// Settle reports the outcome of the Served of a chunk. It ignores any Served that is not in flight.
func (g *Generator) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	g.reservations.settle(user, served, o, g.deps.Now())
}
