package fanout

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestExpected_IsLateIfStepDidNotChange(t *testing.T) {
	for name, c := range map[string]struct {
		atTimer, step, now uint64
		want               bool
	}{
		"the same step":                       {5, 5, 5, true},
		"a later step":                        {5, 6, 6, false},
		"the step returned, and none is next": {5, 5, 6, false},
		"no step":                             {6, 5, 6, false}, // the next walk has not started
	} {
		e := &expected{number: c.atTimer}
		expect.Equal(t, e.isLate(&schemas.Walk{Number: int64(c.step)}, c.now), c.want, "%s: late", name)
	}
}
