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

// composeNext composes the chunk after those that the user has in flight, and reserves its pins. A peek reserves none.
func (g *Generator) composeNext(ctx context.Context, c *composition) error {
	if !c.Peek {
		start := time.Now()
		defer func() { g.metrics.seconds.Observe(time.Since(start).Seconds()) }()
	}
	if err := g.awaitPrevious(ctx, c.User, c.Served); err != nil {
		return fmt.Errorf("wait for the previous visit: %w", err)
	}
	if err := g.compose(ctx, c); err != nil {
		g.reservations.release(c.User, c.Served)
		return err
	}
	g.reserve(c)
	return nil
}

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
