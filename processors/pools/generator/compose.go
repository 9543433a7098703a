package generator

import "context"

// compose runs the stages up to arrange. If arrange needs other candidates, the stages run again. External sources and the model are
// not asked again, and embeddings are only read for new candidates. compose does nothing for a deleted user.
func (g *Generator) compose(ctx context.Context, c *composition) error {
	if g.deps.Deleted.Has(c.User) {
		return nil
	}
	g.gatherOffers(ctx, c)
	for deadline, again := g.backfillDeadline(ctx), true; again; {
		err := g.readWhenReady(ctx, c.User, deadline, func(v *view) (bool, error) { return g.gather(c, v, deadline) })
		if err != nil || c.inactive || c.repeated {
			return err
		}
		g.score(ctx, c)
		g.gatherEmbeddings(ctx, c)
		if again, err = g.arrange(ctx, c); err != nil {
			return err
		}
	}
	return ctx.Err() // the caller may have stopped waiting
}
