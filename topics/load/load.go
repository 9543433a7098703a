// Package load publishes long sequences of events.
package load

import (
	"context"
	"fmt"
	"iter"

	"github.com/smartfeed/smartfeed/schemas"
)

// Publisher puts events into their topics; *topics.Publisher is one.
type Publisher interface {
	// Send publishes one event, waiting for room if need be. done is called when it is acknowledged, or with why not,
	// also from other goroutines and after Flush has given up.
	Send(ctx context.Context, line schemas.Line, done func(error))
	// Flush returns when every event that was sent is acknowledged or given up, or ctx has ended.
	Flush(ctx context.Context) error
}

// All publishes events and returns nil when every one is acknowledged. It stops at the first that is not, with the
// reason, or when ctx ends. acknowledged is called once for each that is, from any goroutine.
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

// Concat yields what each of the sequences yields, one after the other.
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
