package feed

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// gate bounds the calls to one collaborator that are under way, those included that nobody waits for any more.
type gate struct {
	name  string // of the collaborator, in traces
	slots chan struct{}
	calls *sync.WaitGroup
}

func newGate(name string, most int, calls *sync.WaitGroup) *gate {
	return &gate{name: name, slots: make(chan struct{}, most), calls: calls}
}

func (g *gate) underWay() int { return len(g.slots) }

// call is a call under way, with a deadline. Either wait or leave must be called; both may be.
type call[T any] struct {
	ctx     context.Context // of the callee, with the deadline
	results chan result[T]
	left    chan struct{}
	leave   func()
}

type result[T any] struct {
	value T
	err   error
}

// begin starts f. It need not heed its ctx for wait to return in time. late, if not nil, gets the result when nobody
// waits for it any more.
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

// enter calls f as soon as there is room for one more call.
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

// deliver hands the result over at the moment it is waited for, so that it is either used or known to be late.
func (c *call[T]) deliver(r result[T], late func(T, error)) {
	select {
	case c.results <- r:
	case <-c.left:
		if late != nil {
			late(r.value, r.err)
		}
	}
}

// wait returns the result, or the reason why it is not waited for any longer: the deadline, or the end of ctx.
func (c *call[T]) wait() (T, error) {
	defer c.leave()
	select {
	case r := <-c.results: // was there before the deadline, which may have passed before anybody asked
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
