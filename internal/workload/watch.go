package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// watch is the pool of one watcher, with the pins that are waited for in it. However many these are, one request at a
// time looks: else a slow server would be asked the more the slower it is.
type watch struct {
	mu      sync.Mutex
	waiting map[schemas.ID]chan struct{}
	err     error // of the last look
}

// wait returns what is closed when the pin has been seen.
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

// problem is why the last look failed, nil if it did not.
func (w *watch) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// idle says that no pin is waited for.
func (w *watch) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) == 0
}

// saw tells those who wait for pins of a pool.
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

// lookEvery is how often a pool is looked at while something is waited for in it.
const lookEvery = 2 * time.Millisecond

// watched is how many of a pool's best are looked at: the newest, and as many as are under way at once.
const watched = 200

// Watch looks at the watchers' pools until ctx ends. It is what requests of the kind publish wait for.
func (r *Requests) Watch(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.watches {
		all.Go(func() { r.watch(ctx, i) })
	}
	all.Wait()
}

func (r *Requests) watch(ctx context.Context, i int) {
	query := url.Values{"source": {string(schemas.Following)}, "limit": {strconv.Itoa(watched)}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if r.watches[i].idle() {
			continue
		}
		pins, err := r.pool(ctx, r.watcher(i), query)
		r.watches[i].saw(pins, err)
	}
}

// pool returns the pins of a pool.
func (r *Requests) pool(ctx context.Context, user schemas.UserID, query url.Values) ([]schemas.ID, error) {
	answer, err := r.Server.Get(ctx, query, "v1", "users", string(user), "pools")
	if err != nil {
		return nil, err
	}
	var pool struct {
		Items []struct {
			Pin schemas.ID `json:"pin"`
		} `json:"items"`
	}
	if err := json.Unmarshal(answer, &pool); err != nil {
		return nil, fmt.Errorf("read pool of %s: %w", user, err)
	}
	pins := make([]schemas.ID, len(pool.Items))
	for i, item := range pool.Items {
		pins[i] = item.Pin
	}
	return pins, nil
}
