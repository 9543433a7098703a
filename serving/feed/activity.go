package feed

import (
	"context"

	"github.com/smartfeed/smartfeed/schemas"
)

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
	if chunk.Announce && len(chunk.Served.Items) == 0 { // the visit leaves no Served
		announced := begin(context.WithoutCancel(ctx), s.served, s.cfg.AckTimeout, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.announce(ctx, req)
		}, nil)
		s.calls.Go(func() { _, _ = announced.wait() }) // no caller waits; after an error, the next visit tries again
	}
	return chunk, nil
}

func (s *Service) announce(ctx context.Context, req schemas.ChunkRequest) error {
	return s.deps.Activity.Announce(ctx, &schemas.UserActivity{User: req.User, Time: req.Time})
}
