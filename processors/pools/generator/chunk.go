package generator

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

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
	var c *composition
	err := checkServed(req)
	if err == nil {
		c, err = g.newComposition(req)
	}
	if err == nil {
		err = g.composeNext(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
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
