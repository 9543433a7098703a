package topics

import (
	"context"
	"slices"

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

// Gather calls get like Concurrently, and returns the concatenated results in the order of the numbers.
func Gather[T any](ctx context.Context, n int, get func(ctx context.Context, i int) ([]T, error)) ([]T, error) {
	results := make([][]T, n)
	err := Concurrently(ctx, n, func(ctx context.Context, i int) (err error) {
		results[i], err = get(ctx, i)
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(results...), nil
}
