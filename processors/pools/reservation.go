package pools

import (
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	// publishWithin is how long after Chunk its caller may begin to publish the Served.
	publishWithin = 10 * time.Second
	// ackPatience is how long an acknowledged Served is waited for by its id alone, before the log is asked where it
	// ends: that also settles one that was dropped.
	ackPatience = time.Second
)

// reservation is the Served of a user that is under way: from the moment a chunk is asked for until its effect is in the
// rows, or certain never to be.
type reservation struct {
	served string
	pins   []schemas.PinID // of the chunk that has left
	ask    time.Time       // when the log may be asked for its end; zero while the chunk is being made
	asked  bool            // end is known
	end    int64           // of the log when it was asked: nothing of this Served can stand there or behind
	wake   chan struct{}   // closed at the next change
}

// book holds the reservations of a process, one a user.
type book struct {
	mu    sync.Mutex
	users map[schemas.UserID]*reservation
}

// reserve enters a Served unless one is under way; then it returns that one, and a channel that is closed when it
// changes.
func (b *book) reserve(user schemas.UserID, served string) (former reservation, wake <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.users[user]; r != nil {
		return *r, r.wake, false
	}
	b.users[user] = &reservation{served: served, wake: make(chan struct{})}
	return reservation{}, nil, true
}

// release ends a reservation, if it still stands.
func (b *book) release(user schemas.UserID, served string) {
	b.change(user, served, func(*reservation) { delete(b.users, user) })
}

// handOut notes that a chunk has left: if nobody says what became of it, it counts as unknown.
func (b *book) handOut(user schemas.UserID, served string, pins []schemas.PinID, now time.Time) {
	b.change(user, served, func(r *reservation) { r.pins, r.ask = pins, now.Add(publishWithin+topics.DeliveryTimeout) })
}

// holds says whether a pin is in a chunk that has left and is not settled.
func (b *book) holds(user schemas.UserID, pin schemas.PinID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.users[user]
	return r != nil && slices.Contains(r.pins, pin)
}

// settle notes what became of a Served.
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

// ends notes the end of the log.
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

// others returns up to n reservations of other users that have left, in no order: so each visit clears some of those
// whose users do not come again.
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

// progress is how far a user's rows are.
type progress struct {
	state     state
	partition int32
	applied   int64 // offset of the last record of served whose effect they hold
}

func progressOf(s rows.Snapshot) (progress, error) {
	st, err := readState(s)
	return progress{state: st, partition: s.Partition(), applied: s.Applied(topics.Served)}, err
}

// over says whether the reservation is settled by what the rows hold: the id is applied, or the log is up to the end
// that was read when nothing could come any more.
func (r *reservation) over(at *progress) bool {
	return at.state.applied(r.served) || r.asked && at.applied >= r.end-1
}
