package generator

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// Why reports the history of a pin for a user, or its fate in a visit now. It reserves nothing and changes nothing. The
// exploration draws are those of the next visit. It calls external sources and the model, as a visit would.
//
// It returns an error that wraps schemas.ErrUnknownFeed, an error that is schemas.ErrNotOwner if this process does not own
// the user's partition, or a read error.
func (g *Generator) Why(ctx context.Context, req schemas.WhyRequest) (*schemas.Why, error) {
	c, err := g.newComposition(schemas.ChunkRequest{User: req.User, Feed: req.Feed, Limit: req.Limit, Time: req.Time})
	if err != nil {
		return nil, fmt.Errorf("why %s for %s: %w", req.Pin, req.User, err)
	}
	if g.deps.Deleted.Has(req.User) {
		return &schemas.Why{Fate: schemas.FateOut, Reason: schemas.ReasonUserDeleted, Arm: c.arm}, nil
	}
	g.gatherOffers(ctx, c)
	if c.rules.Fills(schemas.FromPopular) { // the pin may be one, even if the chunk is full without them
		g.offerPopular(c)
	}
	w := &inquiry{WhyRequest: req, result: schemas.Why{Arm: c.arm}}
	c.exact = true
	err = g.read(ctx, req.User, func(v *view, _ rows.Snapshot) error {
		if err := g.gatherAll(c, v); err != nil {
			return err
		}
		return g.inspect(w, v, c.offers)
	})
	if err != nil {
		return nil, fmt.Errorf("why %s for %s: %w", req.Pin, req.User, err)
	}
	g.score(ctx, c)
	g.gatherEmbeddings(ctx, c)
	w.result.Degraded = c.degraded
	g.decide(w, c)
	return &w.result, nil
}

// inquiry is a request with its unfinished result.
type inquiry struct {
	schemas.WhyRequest
	result schemas.Why
	hidden schemas.Reason // why the pin is hidden; "": at least one source shows it
	waits  bool           // in a pool, within its cap
	ranked int            // best rank in those pools
	absent schemas.Reason // why the pin is in no pool
	edges  []schemas.ID   // edges that can deliver it

	refused []schemas.ID // follows over the cap that can deliver it
}

// inspect reads the state of the pin from the user's rows.
func (g *Generator) inspect(w *inquiry, v *view, offers map[schemas.Source][]layout.Candidate) error {
	if err := g.findServed(w, v); err != nil {
		return err
	}
	list, err := v.sources(offers)
	if err != nil {
		return err
	}
	var known *visibility.Pin
	for _, source := range list {
		c, rank, err := v.find(source, w.Pin, offers[source])
		if err != nil {
			return err
		}
		if c != nil && w.isMasked(v, &c.Content.Pin) {
			known = &c.Content.Pin
			continue
		}
		if c != nil {
			if w.Card != nil && w.Card.Deleted && !c.Deleted { // the pool has not received the deletion, but the card hides the pin
				c.Deleted, rank = true, 0
			}
			known = &c.Content.Pin
			g.inspectCandidate(w, v, source, c, rank)
		}
	}
	if known == nil && w.Card != nil {
		known = &visibility.Pin{PinContent: w.Card.PinContent}
	}
	if known != nil && !w.waits { // sources have different versions of a pin: it is visible if one shows it
		w.hidden, w.result.By = hides(w.viewer(v), known)
	}
	if len(w.result.Candidates) == 0 {
		w.absent, err = g.absentReason(w, v, known)
	}
	if known != nil && err == nil {
		w.refused, err = v.refused(&known.Facets)
	}
	return err
}

// viewer returns the user without information that the result must not reveal: with Masked, blocks by others.
func (w *inquiry) viewer(v *view) visibility.Viewer {
	viewer := visibility.NewViewer(v.Viewer.User, v.Viewer.Graph, v.Viewer.Deleted)
	if w.Masked {
		viewer.BlockedBy = nil
	}
	return viewer
}

// isMasked reports whether only a block that the result must not reveal hides a pin.
func (w *inquiry) isMasked(v *view, p *visibility.Pin) bool {
	all, masked := visibility.NewViewer(v.Viewer.User, v.Viewer.Graph, v.Viewer.Deleted), w.viewer(v)
	return all.Hides(p, 0) != "" && masked.Hides(p, 0) == ""
}

// refused returns the follows over the cap that can deliver a pin.
func (v *view) refused(f *schemas.Facets) (list []schemas.ID, err error) {
	for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
		for _, id := range deliverers(source, f) {
			value, err := v.Get(rows.Name(layout.KindRefused, id))
			if err != nil {
				return nil, err
			}
			if value != nil {
				list = append(list, id)
			}
		}
	}
	return list, nil
}

// findServed reads whether the pin was shown.
func (g *Generator) findServed(w *inquiry, v *view) error {
	at, found, err := rows.Value[layout.Seen](v, rows.Name(layout.KindSeen, w.Pin))
	if err != nil || !found {
		return err
	}
	w.result.Shown = &schemas.Shown{Position: at.Position, Time: schemas.Timestamp(at.Time)}
	e, err := materializedAt(v, g.deps.Streams.FeedEntries, at.Position)
	if err != nil {
		return fmt.Errorf("read materialized entry: %w", err)
	}
	if e != nil {
		w.result.Shown.Source, w.result.Shown.RankScore = e.Source, &e.RankScore
	}
	return nil
}

// find returns a pin's candidate among all candidates of a source, or nil. It also returns the rank among the waiting,
// unseen candidates, or 0 if the pin is not one of them.
func (v *view) find(source schemas.Source, pin schemas.PinID, offered []layout.Candidate) (*layout.Candidate, int, error) {
	all, err := v.candidates(source, slices.Clone(offered))
	if err != nil {
		return nil, 0, err
	}
	rank := 0
	for _, c := range bestOfEach(all) {
		waits, err := v.Shows(source, &c)
		if err != nil {
			return nil, 0, err
		}
		if waits {
			rank++
		}
		switch {
		case c.Pin == pin && waits:
			return &c, rank, nil
		case c.Pin == pin:
			return &c, 0, nil
		}
	}
	return nil, 0, nil
}

// candidates appends all candidates of a source, including hidden and seen ones, to list.
func (v *view) candidates(source schemas.Source, list []layout.Candidate) ([]layout.Candidate, error) {
	it, err := v.Buffers.Iterate(v, source, 0)
	if err != nil {
		return nil, err
	}
	merged, done := v.pulled.merge(it, v.Viewer.Follows)
	defer done()
	for c := merged.next(); c != nil; c = merged.next() {
		if err := v.Open(c); err != nil {
			return nil, err
		}
		list = append(list, *c)
	}
	return list, it.Err
}

// inspectCandidate records the state of the pin in one pool.
func (g *Generator) inspectCandidate(w *inquiry, v *view, source schemas.Source, c *layout.Candidate, rank int) {
	is := schemas.WhyCandidate{
		Source: source, Rank: rank, Edges: v.edges(source, &c.Facets), Reason: v.Hides(source, c),
	}
	switch {
	case rank > g.pools.MaxCandidates:
		is.Reason = schemas.ReasonCap
	case rank == 0 && is.Reason == "" && w.result.Shown == nil: // the view counts pins that were deferred for too long as seen
		is.Reason = schemas.ReasonDeferralExpired
	case rank == 0 && is.Reason == "":
		is.Reason = schemas.ReasonSeen
	}
	is.RankScore, is.Parts = schemas.RankScore(c.PoolScore), g.writeTime(source, c, w.Card)
	if rank > 0 && rank <= g.pools.MaxCandidates {
		if !w.waits || rank < w.ranked {
			w.ranked = rank
		}
		w.waits = true
	}
	w.result.Candidates = append(w.result.Candidates, is)
}

// writeTime splits a write-time score into its parts. The score of an external source has only one part.
func (g *Generator) writeTime(source schemas.Source, c *layout.Candidate, card *schemas.Card) map[string]float64 {
	if !rules.Graded(source) || g.cfg.HalfLife == 0 {
		return map[string]float64{"offered": float64(c.PoolScore)}
	}
	parts := map[string]float64{"created": float64(score.Base(1, c.Created, g.cfg.HalfLife))}
	rest := float64(c.PoolScore) - parts["created"]
	if card == nil || !(card.Quality > 0) {
		parts["quality_and_edge"] = rest
		return parts
	}
	parts["quality"] = math.Log(card.Quality)
	parts["edge"] = rest - parts["quality"]
	return parts
}

// hides returns why a pin is hidden from a user, regardless of its source, and the ids that cause it.
func hides(viewer visibility.Viewer, p *visibility.Pin) (reason schemas.Reason, by []schemas.ID) {
	switch reason = viewer.Hides(p, 0); reason {
	case schemas.ReasonAuthorDeleted:
		by = []schemas.ID{schemas.ID(p.Author)}
	case schemas.ReasonBlock:
		by = viewer.BlockedIDs(&p.Facets)
	}
	return reason, by
}

// edges returns the live edges that justify a pin in a source.
func (v *view) edges(source schemas.Source, f *schemas.Facets) (live []schemas.ID) {
	for _, id := range deliverers(source, f) {
		if _, ok := v.Viewer.Follows[id]; ok {
			live = append(live, id)
		}
	}
	return live
}

// deliverers returns the followees that can deliver a pin in a source.
func deliverers(source schemas.Source, f *schemas.Facets) []schemas.ID {
	switch source {
	case schemas.Following:
		return []schemas.ID{schemas.ID(f.Author), schemas.ID(f.Board)}
	case schemas.FromInterest:
		return convert.All(f.Interests, func(id schemas.InterestID) schemas.ID { return schemas.ID(id) })
	}
	return nil
}

// absentReason returns why a pin is in no pool.
func (g *Generator) absentReason(w *inquiry, v *view, known *visibility.Pin) (schemas.Reason, error) {
	switch {
	case known == nil:
		return schemas.ReasonUnknown, nil
	case known.Created < v.Viewer.SeenTrimmed:
		return schemas.ReasonSeenTrimmed, nil
	case known.Created < v.Viewer.Expired:
		return schemas.ReasonExpired, nil
	}
	reason := schemas.ReasonNoEdge
	for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
		edges := v.edges(source, &known.Facets)
		if len(edges) == 0 {
			continue
		}
		w.edges = append(w.edges, edges...)
		reason = schemas.ReasonUndelivered
		full, err := g.isFullAbove(v, source, w.Card, edges)
		if full || err != nil {
			return schemas.ReasonCap, err
		}
	}
	return reason, nil
}

// isFullAbove reports whether a pool is full of candidates that rank above the pin.
func (g *Generator) isFullAbove(v *view, source schemas.Source, card *schemas.Card, edges []schemas.ID) (bool, error) {
	if g.cfg.HalfLife == 0 || card == nil || !(card.Quality > 0) {
		return false, nil
	}
	pool, err := v.best(source, g.pools.MaxCandidates)
	if err != nil || len(pool) < g.pools.MaxCandidates {
		return false, err
	}
	weight := float32(0)
	for _, id := range edges {
		weight = max(weight, v.Viewer.Follows[id])
	}
	mine := score.Weighted(score.Base(card.Quality, card.Created, g.cfg.HalfLife), weight)
	last := &pool[len(pool)-1]
	return comparePlaces(mine, card.Pin, last.PoolScore, last.Pin) >= 0, nil
}

// decide applies the rules to the pools and completes the result.
func (g *Generator) decide(w *inquiry, c *composition) {
	visit := rules.Visit{User: c.User, Time: c.Time, Limit: c.Limit, Memory: c.memory}
	visit, _ = g.applyRules(c, visit)
	explained := c.rules.Explain(visit, g.deps.Extensions.admitted(c), c.signals, w.Pin)
	for i := range w.result.Candidates {
		is := &w.result.Candidates[i]
		for _, s := range explained.Scores {
			if s.Source == is.Source {
				is.RankScore = s.RankScore
				maps.Copy(is.Parts, s.Parts)
			}
		}
	}
	a := &w.result
	a.Since = schemas.Timestamp(explained.Since)
	switch {
	case a.Shown != nil:
		a.Fate, a.Reason = schemas.FateShown, w.hidden
	case w.hidden != "":
		a.Fate, a.Reason = schemas.FateHidden, w.hidden
	case g.reservations.has(w.User, w.Pin):
		a.Fate = schemas.FatePending
	case !w.waits:
		a.Fate, a.Reason = w.absentFate()
		a.By = w.edges
		if a.Reason == schemas.ReasonNoEdge && len(w.refused) > 0 {
			a.Reason, a.By = schemas.ReasonFolloweeCap, w.refused
		}
	case g.deps.Extensions.rejects(c, w.Pin):
		a.Fate, a.Reason = schemas.FateWaiting, schemas.ReasonOwnRule
	case explained.Reason == schemas.ReasonNoShare && w.ranked > g.cfg.CandidatesPerSource:
		a.Fate, a.Reason = schemas.FateWaiting, schemas.ReasonBeyondHead
	default:
		a.Fate, a.Reason, a.Place = explained.Fate, explained.Reason, explained.Place
		if a.Reason == schemas.ReasonSimilar {
			a.By = append(a.By, schemas.ID(explained.SimilarTo))
		}
	}
	a.By = slices.Compact(slices.Sorted(slices.Values(a.By)))
}

// absentFate returns the fate of a pin that waits in no pool.
func (w *inquiry) absentFate() (schemas.Fate, schemas.Reason) {
	reason := w.absent
	for _, is := range w.result.Candidates { // ReasonNoEdge is the least specific
		if reason == "" || reason == schemas.ReasonNoEdge {
			reason = is.Reason
		}
	}
	if reason == schemas.ReasonNoEdge {
		return schemas.FateHidden, reason
	}
	return schemas.FateOut, reason
}
