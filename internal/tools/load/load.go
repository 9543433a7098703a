// Package load publishes sequences of events that need not fit into memory.
package load

import (
	"context"
	"fmt"
	"iter"

	"github.com/smartfeed/smartfeed/schemas"
)

// Publisher publishes events to their topics. *topics.Publisher implements it.
type Publisher interface {
	// Send publishes one event, and blocks while the buffers are full. It calls done with nil when the event is
	// acknowledged, or with the error: from any goroutine, and even after Flush has returned an error.
	Send(ctx context.Context, line schemas.Line, done func(error))
	// Flush returns when every sent event is acknowledged or has failed, or when ctx is canceled.
	Flush(ctx context.Context) error
}

// All publishes events and returns nil when every event is acknowledged. It stops at the first error, or when ctx is
// canceled. It calls acknowledged once per acknowledged event, from any goroutine.
func All(ctx context.Context, p Publisher, events iter.Seq[schemas.Line], acknowledged func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := func(err error) {
		if err != nil {
			stop(fmt.Errorf("publish: %w", err))
			return
		}
		acknowledged()
	}
	for line := range events {
		if ctx.Err() != nil {
			break
		}
		p.Send(ctx, line, done)
	}
	err := p.Flush(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Concat yields the elements of all sequences in order.
func Concat(parts ...iter.Seq[schemas.Line]) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for _, part := range parts {
			for line := range part {
				if !yield(line) {
					return
				}
			}
		}
	}
}
