package feed

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// visit answers Visit, without its checks of arguments and its metrics. The only error is schemas.ErrUnknownFeed.
func (s *Service) visit(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	began := s.deps.Now()
	asked := s.askChunk(ctx, schemas.ChunkRequest{
		Served: s.deps.NewID(), User: user, Feed: feed, Limit: limit, Time: schemas.MicrosOf(began),
	})
	r := s.newReading(user)
	newest := begin(ctx, s.store, r.left, r.read(math.MaxInt64, limit), nil)
	defer newest.leave()

	chunk, err := asked.wait()
	if errors.Is(err, schemas.ErrUnknownFeed) {
		return Page{}, err
	}
	if err != nil {
		r.degrade(degradedGenerator)
		chunk = &schemas.Chunk{}
	} else {
		r.below(chunk)
	}
	if rows, ok := await(r, newest); ok {
		r.absorb(rows)
	}
	items := s.show(ctx, r, chunk, limit, began.Add(s.cfg.Longest()))
	return r.page(feed, items), nil
}

// askChunk requests a chunk. If the chunk fails or comes too late, askChunk settles it as failed once the generator has
// returned. This releases its items.
func (s *Service) askChunk(ctx context.Context, req schemas.ChunkRequest) *call[*schemas.Chunk] {
	free := func() { s.deps.Generator.Settle(req.User, req.Served, schemas.Failed) }
	return begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (*schemas.Chunk, error) {
		chunk, err := s.chunk(ctx, req)
		if err != nil && !errors.Is(err, schemas.ErrUnknownFeed) {
			free()
		}
		return chunk, err
	}, func(_ *schemas.Chunk, err error) {
		if err == nil {
			free()
		}
	})
}

// chunk requests a chunk. For an inactive user it first announces the visit and requests the chunk again: the announcement
// makes the followees deliver a backfill of the publications since the last visit.
func (s *Service) chunk(ctx context.Context, req schemas.ChunkRequest) (*schemas.Chunk, error) {
	chunk, err := s.deps.Generator.Chunk(ctx, req)
	if err != nil || s.deps.Returns == nil {
		return chunk, err
	}
	if chunk.Away {
		if err := s.announce(ctx, req); err != nil {
			s.metrics.unannounced.Inc() // the chunk is then degraded; its Served also reactivates the user
		}
		req.Returned = true
		return s.deps.Generator.Chunk(ctx, req)
	}
	if chunk.Announce && len(chunk.Served.Items) == 0 {
		s.announceLater(ctx, req)
	}
	return chunk, nil
}

func (s *Service) announce(ctx context.Context, req schemas.ChunkRequest) error {
	return s.deps.Returns.Announce(ctx, &schemas.Return{User: req.User, Time: req.Time})
}

// announceLater announces a visit that leaves no Served record. No caller waits for it. If it fails, the next visit tries
// again.
func (s *Service) announceLater(ctx context.Context, req schemas.ChunkRequest) {
	announced := begin(context.WithoutCancel(ctx), s.served, s.cfg.ServedTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.announce(ctx, req)
	}, nil)
	s.calls.Go(func() {
		if _, err := announced.wait(); err != nil {
			s.metrics.unannounced.Inc()
		}
	})
}

// show publishes the chunk. It returns the chunk's items on top of materialized ones if they are acknowledged before until,
// and otherwise only materialized items. It reads the store while the acknowledgement is in flight.
func (s *Service) show(ctx context.Context, r *reading, chunk *schemas.Chunk, limit int, until time.Time) []Item {
	for _, reason := range chunk.Degraded {
		r.degrade(reason)
	}
	if len(chunk.Served.Items) == 0 {
		return r.fill(ctx, nil, limit)
	}
	acknowledged := s.publish(ctx, &chunk.Served, until)
	r.prepare(ctx, chunk.Served.Items, limit)
	fresh := r.fresh(chunk.Served.Items)
	items := r.fill(ctx, fresh, limit)
	if acknowledged() {
		return items
	}
	r.degrade(degradedServed)
	return r.fill(ctx, items[len(fresh):], limit)
}

// publish starts to publish the items of a chunk. The returned function waits for the outcome, settles it with the
// generator, and reports whether the items were acknowledged before until. Only then may they be shown as new, see the
// package comment.
func (s *Service) publish(ctx context.Context, served *schemas.Served, until time.Time) (acknowledged func() bool) {
	settle := func(o schemas.Outcome) bool {
		s.deps.Generator.Settle(served.User, served.ID, o)
		return o == schemas.Acknowledged
	}
	if ctx.Err() != nil || s.passed(until) { // the client has disconnected, or it is too late to show the items
		return func() bool { return settle(schemas.Failed) }
	}
	// If the client disconnects now, the outcome must stay certain: an uncertain one delays the user's next visit.
	published := begin(context.WithoutCancel(ctx), s.served, s.cfg.ServedTimeout, func(ctx context.Context) (schemas.Outcome, error) {
		outcome, err := s.deps.Served.Publish(ctx, served)
		// The clock decides: a process that was paused may see the acknowledgement before its timers fire.
		if outcome == schemas.Acknowledged && (err != nil || ctx.Err() != nil || s.passed(until)) {
			outcome = schemas.Unknown
		}
		return outcome, nil
	}, nil)
	return func() bool {
		outcome, err := published.wait()
		if err != nil || outcome == "" { // deadline exceeded
			outcome = schemas.Unknown
		}
		return settle(outcome)
	}
}

// passed reports whether until has passed by the monotonic clock or by the wall clock. The monotonic clock stops while the
// machine is suspended.
func (s *Service) passed(until time.Time) bool {
	now := s.deps.Now()
	return !now.Before(until) || !now.Round(0).Before(until.Round(0))
}
