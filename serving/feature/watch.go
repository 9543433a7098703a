package feature

import (
	"sync"

	"github.com/smartfeed/smartfeed/schemas"
)

// watchers notifies the watchers of a user's features. The zero value is ready to use.
type watchers struct {
	mu     sync.Mutex
	byUser map[schemas.UserID]map[chan struct{}]bool
}

// watch returns a channel that receives after new actions of the user. Several changes between two receives are one
// notification. The caller must call stop.
func (w *watchers) watch(user schemas.UserID) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUser == nil {
		w.byUser = map[schemas.UserID]map[chan struct{}]bool{}
	}
	if w.byUser[user] == nil {
		w.byUser[user] = map[chan struct{}]bool{}
	}
	w.byUser[user][ch] = true
	return ch, func() { w.forget(user, ch) }
}

func (w *watchers) forget(user schemas.UserID, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byUser[user], ch)
	if len(w.byUser[user]) == 0 {
		delete(w.byUser, user)
	}
}

// wake notifies without blocking.
func (w *watchers) wake(actions []*schemas.EnrichedAction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byUser) == 0 {
		return
	}
	for _, a := range actions {
		for ch := range w.byUser[a.Actor] {
			select {
			case ch <- struct{}{}:
			default: // a notification is already pending
			}
		}
	}
}
