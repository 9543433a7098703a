// Package load publishes sequences of events that need not fit into memory.
package load

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
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
// canceled. It calls acknowledged for each acknowledged event, from any goroutine.
func All(ctx context.Context, p Publisher, events iter.Seq[schemas.Line], acknowledged func(schemas.Line)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for line := range events {
		if ctx.Err() != nil {
			break
		}
		p.Send(ctx, line, func(err error) {
			if err != nil {
				stop(fmt.Errorf("publish: %w", err))
				return
			}
			acknowledged(line)
		})
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

// Open returns a publisher for the brokers of a command. The caller must close it.
func Open(ctx context.Context, s topics.Setup) (*topics.Publisher, error) {
	streams, err := s.Streams(ctx)
	if err != nil {
		return nil, err
	}
	return topics.NewPublisher(s.Kafka, streams)
}

// WaitProcessed waits until all acknowledged events have been processed, and reports its progress to say. It returns an
// error after timeout.
func WaitProcessed(ctx context.Context, s topics.Setup, timeout time.Duration, say func(state string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not processed within %s", timeout))
	defer cancel()
	since := schemas.MicrosOf(time.Now())
	return s.Wait(ctx, since, func(w topics.WaitState) { say(w.String()) })
}
