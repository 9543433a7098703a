package generator

import (
	"context"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// view is a snapshot of a user's rows, together with the pulled pins.
type view struct {
	*layout.View
	pulled *Pulled
}

// read calls f with a view of the user's rows. The view is valid until f returns.
func (g *Generator) read(ctx context.Context, user schemas.UserID, f func(*view, rows.Snapshot) error) error {
	return g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) error {
		buffers := g.buffers.Get().(*layout.Buffers)
		defer g.buffers.Put(buffers)
		v, err := layout.NewView(s, user, g.deps.Deleted, g.deps.Now(), g.pools.MaxPinAge, buffers)
		if err != nil {
			return err
		}
		return f(&view{v, g.deps.Pulled}, s)
	})
}
