package generator

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

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
	signals := rules.Signals{Vectors: map[schemas.PinID]rules.Vector{}}
	return &composition{ChunkRequest: req, feeds: feeds, rules: feed, arm: arm, isLogged: isLogged, signals: signals}, nil
}
