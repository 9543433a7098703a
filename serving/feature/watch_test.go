package feature

import (
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestWatch_CoalescesNotifications(t *testing.T) {
	var w watchers
	one, stopOne := w.watch("user:1")
	same, stopSame := w.watch("user:1")
	other, stopOther := w.watch("user:2")
	w.wake([]*schemas.EnrichedAction{{Actor: "user:1"}, {Actor: "user:3"}, {Actor: "user:1"}})
	w.wake([]*schemas.EnrichedAction{{Actor: "user:1"}})
	for name, tt := range map[string]struct {
		ch   <-chan struct{}
		want int
	}{"one": {one, 1}, "another of the same user": {same, 1}, "another user": {other, 0}} {
		if got := len(tt.ch); got != tt.want {
			t.Errorf("%s: got %d wake-ups, want %d", name, got, tt.want)
		}
	}
	stopOne()
	<-one
	w.wake([]*schemas.EnrichedAction{{Actor: "user:1"}})
	if len(one) != 0 {
		t.Error("a stopped watcher was woken")
	}
	stopSame()
	stopOther()
	if len(w.byUser) != 0 {
		t.Errorf("%d users are still watched", len(w.byUser))
	}
}
