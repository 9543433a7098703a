package feed

import (
	"context"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

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
