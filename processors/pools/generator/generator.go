// Package generator composes the chunks for visits. It reads the rows of the group pools and writes none: the Served that a
// visit publishes contains the new state, and the group applies it to the rows.
//
// Chunk composes a chunk in these steps (chunk.go, reserve.go, compose.go), which pass on a composition (composition.go):
//
//  1. awaitPrevious waits until the Served of the user's previous visit is applied or has failed (reserve.go).
//  2. gatherOffers requests the candidates of external sources (external.go, protocol.go).
//  3. readWhenReady waits until this process may read the user's rows (view.go, session.go). On one snapshot of them, gather reads the
//     signals for the rules, and filter the best candidates of each source that the user may be shown (gather.go).
//  4. score requests the scores of the external model (score.go), and gatherEmbeddings the embeddings for the spacing of similar
//     pins (embeddings.go).
//  5. arrange applies the rules of the feed (package rules) and checks the chosen pins (arrange.go, chosen.go). If some of them were
//     seen, or if the chunk is short without the popular pins, steps 3 to 5 run again with other candidates.
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
	"cmp"
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
	Deleted    visibility.GrowingDeletedUsers
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
	metrics      measures
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
	deps.Pulled, deps.Popular = cmp.Or(deps.Pulled, NewPulled(nil)), cmp.Or(deps.Popular, NewPopular(0, nil))
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
	m, err := newMeasures(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
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
func (g *Generator) Close() {
	for _, s := range g.external.services {
		s.Close()
	}
}
