package fanout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		if got := e.isLate(&schemas.FanoutStep{Number: int64(c.step)}, c.now); got != c.want {
			t.Errorf("%s: late %v, want %v", name, got, c.want)
		}
	}
}

func TestParseExpected_RejectsMalformedRows(t *testing.T) {
	want := expected{timer: 7, number: 8, step: []byte("step")}
	value := appendExpected(nil, want)
	if got, err := parseExpected(value); err != nil || !cmp.Equal(want, *got, cmp.AllowUnexported(expected{})) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for n := 1; n < 16; n++ {
		if got, err := parseExpected(value[:n]); err == nil {
			t.Errorf("%d bytes were read as %+v", n, got)
		}
	}
}
