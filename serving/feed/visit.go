package feed

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Visit answers a visit with at most limit items, new ones first. The only errors are ErrBadLimit and
// schemas.ErrUnknownFeed.
func (s *Service) Visit(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	return s.visitOrPeek(ctx, "visit", schemas.ChunkRequest{Served: s.deps.NewID(), User: user, Feed: feed, Limit: limit})
}

// VisitOnce is Visit with a key of the visit, of any length. If an earlier attempt with the same key has shown new items, and
// is among the user's last 32 visits, VisitOnce shows none. Its answer is then the materialized feed, with those items on top.
func (s *Service) VisitOnce(ctx context.Context, user schemas.UserID, feed string, limit int, key string) (Page, error) {
	attempts := attemptsOf(key)
	return s.visitOrPeek(ctx, "visit", schemas.ChunkRequest{
		Served: attempts + s.deps.NewID(), Attempts: attempts, User: user, Feed: feed, Limit: limit,
	})
}

// attemptsOf returns the prefix of the ids of a visit with a key. It has 23 bytes, so that an id fits in a record.
func attemptsOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:16]) + "."
}

// Peek returns the answer that Visit would give now, and changes nothing. It reads the feed of an inactive user as it is, with
// "reactivating" in Degraded. Its errors are those of Visit.
func (s *Service) Peek(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	return s.visitOrPeek(ctx, "peek", schemas.ChunkRequest{Peek: true, User: user, Feed: feed, Limit: limit})
}

// visitOrPeek answers a visit or a peek, which is the kind of the metrics.
func (s *Service) visitOrPeek(ctx context.Context, kind string, req schemas.ChunkRequest) (Page, error) {
	if err := checkLimit(req.Limit); err != nil {
		return Page{}, err
	}
	if len(req.Feed) > maxFeedName {
		return Page{}, fmt.Errorf("feed of %d bytes: %w", len(req.Feed), schemas.ErrUnknownFeed)
	}
	if s.deps.Deleted.Has(req.User) {
		return Page{}.full(), nil
	}
	defer s.metrics.time(kind, s.deps.Now)()
	page, err := s.visit(ctx, req)
	s.metrics.count(page.Degraded)
	return page, err
}

// visit requests a chunk, collects it and the newest materialized items, and answers. Only an unknown feed is an error.
// Anything else degrades the page.
func (s *Service) visit(ctx context.Context, req schemas.ChunkRequest) (Page, error) {
	start := s.deps.Now()
	req.Time = schemas.MicrosOf(start)
	chunkCall := s.requestChunk(ctx, req)
	r := s.newReader(req.User)
	r.peek = req.Peek
	storeCall := begin(ctx, s.store, r.left, r.read(math.MaxInt64, req.Limit), nil) // at the same time
	defer storeCall.leave()

	// The chunk comes first: it says at which position the stored items start.
	chunk, err := chunkCall.wait()
	switch {
	case errors.Is(err, schemas.ErrUnknownFeed):
		return Page{}, err
	case err != nil:
		r.degrade(degradedGenerator)
		chunk = &schemas.Chunk{}
	default:
		r.startBelow(chunk)
	}
	if rows, ok := await(r, storeCall); ok {
		r.addRows(rows)
	}
	return r.page(req.Feed, s.answer(ctx, r, chunk, req.Limit, start.Add(s.cfg.Longest()))), nil
}

// requestChunk requests a chunk. If the chunk fails or comes too late, requestChunk settles it as failed once the generator
// has returned. This releases its items. A peek reserves none.
func (s *Service) requestChunk(ctx context.Context, req schemas.ChunkRequest) *call[*schemas.Chunk] {
	release := func() {
		if !req.Peek {
			s.deps.Generator.Settle(req.User, req.Served, schemas.Failed)
		}
	}
	return begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (*schemas.Chunk, error) {
		chunk, err := s.chunk(ctx, req)
		if err != nil && !errors.Is(err, schemas.ErrUnknownFeed) {
			release()
		}
		return chunk, err
	}, func(_ *schemas.Chunk, err error) {
		if err == nil {
			release()
		}
	})
}

// chunk requests a chunk. For an inactive user it first announces the visit and requests the chunk again: the announcement
// makes the followees deliver a backfill of the publications since the last visit.
func (s *Service) chunk(ctx context.Context, req schemas.ChunkRequest) (*schemas.Chunk, error) {
	chunk, err := s.deps.Generator.Chunk(ctx, req)
	if err != nil || s.deps.Activity == nil {
		return chunk, err
	}
	if chunk.Inactive {
		_ = s.announce(ctx, req) // after an error, the chunk is degraded, and its Served reactivates the user
		req.Announced = true
		return s.deps.Generator.Chunk(ctx, req)
	}
	if chunk.Announce && len(chunk.Served.Items) == 0 {
		s.announceLater(ctx, req)
	}
	return chunk, nil
}

func (s *Service) announce(ctx context.Context, req schemas.ChunkRequest) error {
	return s.deps.Activity.Announce(ctx, &schemas.UserActivity{User: req.User, Time: req.Time})
}

// announceLater announces a visit that leaves no Served record. No caller waits for it. If it fails, the next visit tries
// again.
func (s *Service) announceLater(ctx context.Context, req schemas.ChunkRequest) {
	call := begin(context.WithoutCancel(ctx), s.served, s.cfg.AckTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.announce(ctx, req)
	}, nil)
	s.calls.Go(func() { _, _ = call.wait() })
}

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

// Older answers the page at cursor, the Page.Next of an earlier answer. The only errors are ErrBadLimit and ErrBadCursor.
func (s *Service) Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{}, err
	}
	at, err := s.cursors.openFeed(cursor, user)
	if err != nil {
		return Page{}, err
	}
	if s.deps.Deleted.Has(user) {
		return Page{}.full(), nil
	}
	defer s.metrics.time("older", s.deps.Now)()
	r := s.newReader(user)
	r.next = at.below - 1
	if at.below == math.MaxInt64 {
		r.next = unknown
	}
	items := r.fill(ctx, nil, limit)
	page := r.page(at.feed, items)
	s.metrics.count(page.Degraded)
	return page, nil
}
