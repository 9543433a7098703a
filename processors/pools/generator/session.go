package generator

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// session is a period during which this process owns a partition without interruption.
type session struct {
	partition int32
	number    uint64
	// exclusiveAt is a time from which each chunk of a previous owner is in the topic served or can no longer be shown
	// as new.
	exclusiveAt time.Time
	endKnown    bool
	end         int64 // end offset of the topic served, read after exclusiveAt
	ready       bool  // the partition has applied served up to end
}

// session returns the session of the partition of a snapshot. It is ready when the partition has applied all records
// that were in served at a time after session.exclusiveAt.
func (g *Generator) session(s rows.Snapshot) session {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.sessions[s.Partition()]
	if at.number != s.Session() {
		at = session{partition: s.Partition(), number: s.Session(), exclusiveAt: s.Since().Add(g.cfg.HandoverWait)}
	}
	if at.endKnown && s.Applied(topics.Served) >= at.end-1 {
		at.ready = true
	}
	g.sessions[s.Partition()] = at
	return at
}

// readSessionEnd reads the end of served once session.exclusiveAt has passed, and before that waits for it. Before that, a
// visit with a chunk of the previous owner could still publish its Served after the end that was read.
func (g *Generator) readSessionEnd(ctx context.Context, at session) error {
	if g.deps.Now().Before(at.exclusiveAt) {
		return g.await(ctx, at.exclusiveAt, nil, nil)
	}
	end, err := g.endOfServed(ctx, at.partition)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.sessions[at.partition]; known.number == at.number && !known.endKnown {
		known.endKnown, known.end = true, end
		g.sessions[at.partition] = known
	}
	return nil
}

// endOfServed returns the end offset of a partition of served.
func (g *Generator) endOfServed(ctx context.Context, partition int32) (int64, error) {
	end, err := g.deps.End.End(ctx, topics.Served, partition)
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", topics.Served, err)
	}
	return end, nil
}

// await returns when one of the channels is closed, when ctx ends, or at the given time. It ignores a time that is zero
// or in the past.
func (g *Generator) await(ctx context.Context, at time.Time, rowsChanged, changed <-chan struct{}) error {
	var due <-chan time.Time
	if left := at.Sub(g.deps.Now()); !at.IsZero() && left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rowsChanged:
	case <-changed:
	case <-due:
	}
	return nil
}
