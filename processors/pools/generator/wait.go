package generator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	// publishWithin is the time after Chunk within which its caller may start to publish the Served.
	publishWithin = 10 * time.Second
	// ackPatience is the time during which an acknowledged Served is awaited only by its id, before the end of the log is read.
	// The end of the log also settles a Served that was dropped.
	ackPatience = time.Second
)

// reservation is the Served that a user has in flight: from the request for a chunk until its effect is in the rows or has
// become impossible.
type reservation struct {
	served    string
	pins      []schemas.PinID // of the chunk that was returned
	readEndAt time.Time       // when the end of the log may be read; zero while the chunk is composed
	endKnown  bool
	end       int64         // end of the log when it was read: the Served cannot be appended at or after it
	changed   chan struct{} // closed at the next change
}

// isComposing reports whether the chunk was not returned yet.
func (r *reservation) isComposing() bool { return r.readEndAt.IsZero() }

// awaitPrevious reserves the user's next Served as soon as no other one is in flight. For a peek, whose id is "", it only
// waits. It also releases some settled reservations of other users.
func (g *Generator) awaitPrevious(ctx context.Context, user schemas.UserID, served string) error {
	for {
		rowsChanged := g.deps.Rows.Changed(string(user))
		previous, ok := g.reservations.add(user, served)
		if ok {
			g.releaseSettled(ctx, user)
			return nil
		}
		settled, err := g.isSettled(ctx, user, &previous)
		if err != nil {
			return err
		}
		if settled {
			g.reservations.release(user, previous.served)
			continue
		}
		if err := g.await(ctx, previous.readEndAt, rowsChanged, previous.changed); err != nil {
			return err
		}
	}
}

// isSettled reports whether the rows settle a reservation: its id is applied, or the log is applied up to an end after which
// the Served cannot be appended. From r.readEndAt on, isSettled reads that end.
func (g *Generator) isSettled(ctx context.Context, user schemas.UserID, r *reservation) (bool, error) {
	if r.isComposing() {
		return false, nil
	}
	var st layout.State
	var partition int32
	var applied int64 // offset of the last record of served that is applied to the rows
	err := g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) (err error) {
		partition, applied = s.Partition(), s.Applied(topics.Served)
		st, err = layout.ReadState(s)
		return err
	})
	if err != nil {
		return false, err
	}
	if st.Applied(r.served) {
		return true, nil
	}
	if !r.endKnown && !g.deps.Now().Before(r.readEndAt) {
		if r.end, err = g.endOfServed(ctx, partition); err != nil {
			return false, err
		}
		r.endKnown = true
		g.reservations.change(user, r.served, func(known *reservation) { known.endKnown, known.end = true, r.end })
	}
	return r.endKnown && applied >= r.end-1, nil
}

// releaseSettled releases some reservations of users without a new visit. From r.readEndAt on, it also releases reservations
// whose partition has moved to another process: if the partition returns, a chunk waits for all records then in served,
// which include the reservation.
func (g *Generator) releaseSettled(ctx context.Context, user schemas.UserID) {
	const some = 2
	for other, r := range g.reservations.others(user, some) {
		settled, err := g.isSettled(ctx, other, &r)
		var notOwner *rows.NotOwnerError
		if settled || errors.As(err, &notOwner) && !g.deps.Now().Before(r.readEndAt) {
			g.reservations.release(other, r.served)
		}
	}
}

// reserve reserves the pins of a composed chunk until its outcome is known. An empty chunk has no outcome, and a peek has no
// reservation.
func (g *Generator) reserve(c *composition) {
	if c.result == nil || len(c.result.Items) == 0 {
		g.reservations.release(c.User, c.Served)
		return
	}
	pins := make([]schemas.PinID, len(c.result.Items))
	for i := range c.result.Items {
		pins[i] = c.result.Items[i].Pin
	}
	readEndAt := g.deps.Now().Add(publishWithin + topics.DeliveryTimeout) // without a call of Settle, the outcome counts as unknown
	g.reservations.change(c.User, c.Served, func(r *reservation) { r.pins, r.readEndAt = pins, readEndAt })
}

// Settle reports the outcome of the Served of a chunk. It ignores any Served that is not in flight.
func (g *Generator) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	now := g.deps.Now()
	g.reservations.change(user, served, func(r *reservation) {
		switch o {
		case schemas.Failed:
			delete(g.reservations.users, user)
		case schemas.Acknowledged:
			r.readEndAt = now.Add(ackPatience)
		default:
			r.readEndAt = now.Add(topics.DeliveryTimeout)
		}
	})
}

// reservations holds the reservations of a process, at most one per user.
type reservations struct {
	mu    sync.Mutex
	users map[schemas.UserID]*reservation
}

// add adds a reservation unless the user has one. Otherwise it returns the existing one. Without an id it adds none; the other
// methods ignore such a reservation.
func (b *reservations) add(user schemas.UserID, served string) (previous reservation, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r := b.users[user]; {
	case r != nil:
		return *r, false
	case served != "":
		b.users[user] = &reservation{served: served, changed: make(chan struct{})}
	}
	return reservation{}, true
}

// release removes a reservation if it still exists.
func (b *reservations) release(user schemas.UserID, served string) {
	b.change(user, served, func(*reservation) { delete(b.users, user) })
}

// has reports whether a pin is in a returned chunk that is not settled.
func (b *reservations) has(user schemas.UserID, pin schemas.PinID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.users[user]
	return r != nil && slices.Contains(r.pins, pin)
}

// change calls f with a reservation if it still exists, and wakes those that wait for it.
func (b *reservations) change(user schemas.UserID, served string, f func(*reservation)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.users[user]
	if r == nil || r.served != served {
		return
	}
	f(r)
	close(r.changed)
	r.changed = make(chan struct{})
}

// others returns up to n reservations of other users whose chunks were returned, in no order. Each visit uses it to release
// some reservations of users who do not return.
func (b *reservations) others(user schemas.UserID, n int) map[schemas.UserID]reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := make(map[schemas.UserID]reservation, n)
	visited := 0
	for other, r := range b.users {
		if visited++; visited > 2*n || len(found) == n {
			break
		}
		if other != user && !r.isComposing() {
			found[other] = *r
		}
	}
	return found
}

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

// view is a snapshot of a user's rows, together with the pulled pins.
type view struct {
	*layout.View
	pulled *Pulled // nil: none
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
