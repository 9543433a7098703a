package topics

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// maxConcurrent is the maximum number of concurrent calls of Concurrently. Without a maximum, one request would take all
// connections to a process.
const maxConcurrent = 8

// Concurrently calls f for each number below n, such as each partition, at most eight at a time. It returns the first error,
// whose call also ends the context of the others.
func Concurrently(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrent)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}
