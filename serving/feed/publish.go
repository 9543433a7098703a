package feed

import (
	"context"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// answer returns the items of a page: the visible items of the chunk, then materialized items up to the limit. A visit shows
// new items only if their Served was acknowledged before the given time; otherwise materialized items take their
// places. The store is read while the acknowledgement is in flight.
func (s *Service) answer(ctx context.Context, r *reader, chunk *schemas.Chunk, limit int, until time.Time) []Item {
	r.degrade(chunk.Degraded...)
	if len(chunk.Served.Items) == 0 {
		return r.fill(ctx, nil, limit)
	}
	acknowledged := func() bool { return true }
	if !r.peek {
		acknowledged = s.publishServed(ctx, &chunk.Served, until)
	}
	r.prefetch(ctx, chunk.Served.Items, limit)
	newItems := r.visibleNew(chunk.Served.Items)
	items := r.fill(ctx, newItems, limit)
	if acknowledged() {
		return items
	}
	r.degrade(degradedServed)
	return r.fill(ctx, items[len(newItems):], limit)
}

// publishServed starts to publish the items of a chunk. The returned function waits for the outcome, settles it with the
// generator, and reports whether the items were acknowledged before the given time. Only then may they be shown as new, see
// the package comment.
func (s *Service) publishServed(ctx context.Context, served *schemas.Served, until time.Time) (acknowledged func() bool) {
	settle := func(o schemas.Outcome) bool {
		s.deps.Generator.Settle(served.User, served.ID, o)
		return o == schemas.Acknowledged
	}
	if ctx.Err() != nil || s.hasPassed(until) { // the client has disconnected, or it is too late to show the items
		return func() bool { return settle(schemas.Failed) }
	}
	// If the client disconnects now, the outcome must stay certain: an uncertain one delays the user's next visit.
	servedCall := begin(context.WithoutCancel(ctx), s.served, s.cfg.AckTimeout, func(ctx context.Context) (schemas.Outcome, error) {
		outcome, err := s.deps.Served.Publish(ctx, served)
		// The clock decides: a process that was paused may see the acknowledgement before its timers fire.
		if outcome == schemas.Acknowledged && (err != nil || ctx.Err() != nil || s.hasPassed(until)) {
			outcome = schemas.Unknown
		}
		return outcome, nil
	}, nil)
	return func() bool {
		outcome, err := servedCall.wait()
		if err != nil || outcome == "" { // deadline exceeded
			outcome = schemas.Unknown
		}
		return settle(outcome)
	}
}

// hasPassed reports whether a time has passed by the monotonic clock or by the wall clock. The monotonic clock stops
// while the machine is suspended.
func (s *Service) hasPassed(at time.Time) bool {
	now := s.deps.Now()
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}
