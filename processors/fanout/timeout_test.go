package fanout

import (
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestExpectedStep_IsLateIfItIsTheOneOfWhenTheTimerWasSet(t *testing.T) {
	for name, c := range map[string]struct {
		atTimer, step, now uint64
		want               bool
	}{
		"the same all the time":          {5, 5, 5, true},
		"a later one since":              {5, 6, 6, false},
		"it came back, and none is next": {5, 5, 6, false},
		"none all the time":              {6, 5, 6, false}, // the next walk has not started
	} {
		e := &expected{number: c.atTimer}
		if got := e.isLate(&schemas.Walk{Number: int64(c.step)}, c.now); got != c.want {
			t.Errorf("%s: late %v, want %v", name, got, c.want)
		}
	}
}
