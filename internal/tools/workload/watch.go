package workload

import (
	"context"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/schemas"
)

// watch is the pool of a watcher and the pins that are awaited in it. It polls the pool for all of them with one request at
// a time. Otherwise a slower server would get more requests.
type watch struct {
	mu      sync.Mutex
	waiting map[schemas.ID]chan struct{}
	err     error // of the last poll
}

// wait returns a channel that is closed when the pin has been seen.
func (w *watch) wait(pin schemas.ID) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[schemas.ID]chan struct{}{}
	}
	seen := make(chan struct{})
	w.waiting[pin] = seen
	return seen
}

func (w *watch) forget(pin schemas.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, pin)
}

// problem returns the error of the last poll, if any.
func (w *watch) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// idle reports whether no pin is awaited.
func (w *watch) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) == 0
}

// saw notifies the waiters of pins in a pool.
func (w *watch) saw(pins []schemas.ID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	for _, pin := range pins {
		if seen, ok := w.waiting[pin]; ok {
			close(seen)
			delete(w.waiting, pin)
		}
	}
}

// pollEvery is the interval between polls of a pool with awaited pins.
const pollEvery = 2 * time.Millisecond

// watched is the number of pins to read from a pool. New pins are the best ones, so it limits the number in flight.
const watched = 200

// Watch polls the watchers' pools until ctx is done. Requests of the kind publish wait for it.
func (r *Requests) Watch(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.watches {
		all.Go(func() { r.watch(ctx, i) })
	}
	all.Wait()
}

func (r *Requests) watch(ctx context.Context, i int) {
	_ = periodic.Run(ctx, pollEvery, func() error { // the function never fails
		if !r.watches[i].idle() {
			r.watches[i].saw(r.pool(ctx, r.watcher(i)))
		}
		return nil
	})
}

// pool returns the best pins of a user's pool.
func (r *Requests) pool(ctx context.Context, user schemas.UserID) ([]schemas.ID, error) {
	pool, err := r.Server.Pool(ctx, string(user), string(schemas.Following), watched)
	pins := make([]schemas.ID, len(pool.Items))
	for i, item := range pool.Items {
		pins[i] = schemas.ID(item.Pin)
	}
	return pins, err
}
