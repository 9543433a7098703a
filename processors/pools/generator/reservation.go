package generator

import (
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	// publishWithin is how long after Chunk its caller may start to publish the Served.
	publishWithin = 10 * time.Second
	// ackPatience is how long an acknowledged Served is awaited by its id only, before the end of the log is read. The end of
	// the log also settles a Served that was dropped.
	ackPatience = time.Second
)

// reservation is the Served that a user has in flight: from the request for a chunk until its effect is in the rows, or can
// no longer come.
type reservation struct {
	served string
	pins   []schemas.PinID // of the chunk that was returned
	ask    time.Time       // when the end of the log may be read; zero while the chunk is composed
	asked  bool            // end is known
	end    int64           // end of the log when it was read: the Served cannot be appended at or after it
	wake   chan struct{}   // closed at the next change
}

// book holds the reservations of a process, at most one per user.
type book struct {
	mu    sync.Mutex
	users map[schemas.UserID]*reservation
}

// reserve adds a reservation unless the user has one. Otherwise it returns the existing one and a channel that is closed when
// that changes.
func (b *book) reserve(user schemas.UserID, served string) (former reservation, wake <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.users[user]; r != nil {
		return *r, r.wake, false
	}
	b.users[user] = &reservation{served: served, wake: make(chan struct{})}
	return reservation{}, nil, true
}

// release removes a reservation if it still exists.
func (b *book) release(user schemas.UserID, served string) {
	b.change(user, served, func(*reservation) { delete(b.users, user) })
}

// handOut records that a chunk was returned. Without a call of settle, its outcome counts as unknown.
func (b *book) handOut(user schemas.UserID, served string, pins []schemas.PinID, now time.Time) {
	b.change(user, served, func(r *reservation) { r.pins, r.ask = pins, now.Add(publishWithin+topics.DeliveryTimeout) })
}

// holds reports whether a pin is in a returned chunk that is not settled.
func (b *book) holds(user schemas.UserID, pin schemas.PinID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.users[user]
	return r != nil && slices.Contains(r.pins, pin)
}

// settle records the outcome of a Served.
func (b *book) settle(user schemas.UserID, served string, o schemas.Outcome, now time.Time) {
	b.change(user, served, func(r *reservation) {
		switch o {
		case schemas.Failed:
			delete(b.users, user)
		case schemas.Acknowledged:
			r.ask = now.Add(ackPatience)
		default:
			r.ask = now.Add(topics.DeliveryTimeout)
		}
	})
}

// ends records the end of the log.
func (b *book) ends(user schemas.UserID, served string, end int64) {
	b.change(user, served, func(r *reservation) { r.asked, r.end = true, end })
}

func (b *book) change(user schemas.UserID, served string, f func(*reservation)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.users[user]
	if r == nil || r.served != served {
		return
	}
	f(r)
	close(r.wake)
	r.wake = make(chan struct{})
}

// others returns up to n reservations of other users whose chunks were returned, in no order. Each visit uses it to release
// some reservations of users who do not visit again.
func (b *book) others(user schemas.UserID, n int) map[schemas.UserID]reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := make(map[schemas.UserID]reservation, n)
	looked := 0
	for other, r := range b.users {
		if looked++; looked > 2*n || len(found) == n {
			break
		}
		if other != user && !r.ask.IsZero() {
			found[other] = *r
		}
	}
	return found
}

// progress is how far a user's rows have been processed.
type progress struct {
	state     layout.State
	partition int32
	applied   int64 // offset of the last record of served that is applied to the rows
}

func progressOf(s rows.Snapshot) (progress, error) {
	st, err := layout.ReadState(s)
	return progress{state: st, partition: s.Partition(), applied: s.Applied(topics.Served)}, err
}

// over reports whether the rows settle the reservation: the id is applied, or the log is applied up to an end after which the
// Served cannot be appended.
func (r *reservation) over(at *progress) bool {
	return at.state.Applied(r.served) || r.asked && at.applied >= r.end-1
}
