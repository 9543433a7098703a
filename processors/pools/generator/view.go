package generator

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// view is a snapshot of a user's rows, together with the pulled pins.
type view struct {
	*layout.View
	pulled *Pulled
}

// backfillDeadline returns until when a chunk waits for backfills. It leaves a quarter of the remaining time of ctx to the
// other stages.
func (g *Generator) backfillDeadline(ctx context.Context) time.Time {
	wait := g.cfg.ReactivationTimeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)*3/4)
	}
	return g.deps.Now().Add(wait)
}

// readWhenReady calls f with a view of the user's rows as soon as the partition has applied the chunks of its previous
// owner. If f is not done, it is called again with the next state of the rows, and at the deadline.
func (g *Generator) readWhenReady(
	ctx context.Context, user schemas.UserID, deadline time.Time, f func(*view) (done bool, err error),
) error {
	for {
		changed := g.deps.Rows.Changed(string(user))
		var at session
		var done bool
		err := g.read(ctx, user, func(v *view, s rows.Snapshot) (err error) {
			if at = g.session(s); at.ready {
				done, err = f(v)
			}
			return err
		})
		if err != nil || done {
			return err
		}
		if at.endKnown {
			err = g.await(ctx, deadline, changed, nil)
		} else {
			err = g.readSessionEnd(ctx, at)
		}
		if err != nil {
			return fmt.Errorf("wait until %s is applied: %w", topics.Served, err)
		}
	}
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
