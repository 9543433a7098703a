package feed

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// gate limits the calls to one dependency that are in flight, including calls whose caller has stopped waiting.
type gate struct {
	name  string // of the dependency, in traces
	slots chan struct{}
	calls *sync.WaitGroup
}

func newGate(name string, most int, calls *sync.WaitGroup) *gate {
	return &gate{name: name, slots: make(chan struct{}, most), calls: calls}
}

// call is a call in flight, with a deadline. The caller must call wait or leave, and may call both.
type call[T any] struct {
	ctx     context.Context // passed to the callee, with the deadline
	results chan result[T]
	left    chan struct{}
	leave   func()
}

type result[T any] struct {
	value T
	err   error
}

// begin starts f. wait returns in time even if f ignores its ctx. If late is not nil, it receives the result if the caller
// has stopped waiting.
func begin[T any](
	ctx context.Context, g *gate, within time.Duration, f func(context.Context) (T, error), late func(T, error),
) *call[T] {
	ctx, cancel := context.WithTimeout(ctx, within)
	c := &call[T]{ctx: ctx, results: make(chan result[T]), left: make(chan struct{})}
	c.leave = sync.OnceFunc(func() {
		close(c.left)
		cancel()
	})
	g.calls.Go(func() {
		defer cancel()
		ctx, span := tracing.Start(ctx, g.name, trace.SpanKindInternal)
		r := enter(ctx, g, f)
		tracing.End(span, r.err)
		c.deliver(r, late)
	})
	return c
}

// enter calls f as soon as fewer calls than the limit are in flight.
func enter[T any](ctx context.Context, g *gate, f func(context.Context) (T, error)) result[T] {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return result[T]{err: ctx.Err()}
	}
	value, err := f(ctx)
	return result[T]{value, err}
}

// deliver passes the result to a waiting caller, or to late. Every result is therefore either used or known to be late.
func (c *call[T]) deliver(r result[T], late func(T, error)) {
	select {
	case c.results <- r:
	case <-c.left:
		if late != nil {
			late(r.value, r.err)
		}
	}
}

// wait returns the result. It returns an error at the deadline and when ctx ends.
func (c *call[T]) wait() (T, error) {
	defer c.leave()
	select {
	case r := <-c.results: // arrived before the deadline, even if the deadline has passed by now
		return r.value, r.err
	default:
	}
	select {
	case r := <-c.results:
		return r.value, r.err
	case <-c.ctx.Done():
		var none T
		return none, c.ctx.Err()
	}
}
