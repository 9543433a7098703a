package pools

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestPresenceComesBackFromItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := presence{
			last: schemas.Micros(rapid.Int64().Draw(t, "last")), away: rapid.Bool().Draw(t, "away"),
			looks: schemas.Micros(rapid.Int64().Draw(t, "looks")),
			asked: schemas.Micros(rapid.Int64().Draw(t, "asked")), want: rapid.IntRange(0, 1<<30).Draw(t, "want"),
		}
		want.came = rapid.IntRange(0, want.want).Draw(t, "came")
		value := appendPresence(nil, want)
		if got, err := parsePresence(value); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range len(value) {
			if n == len(value)-8 {
				continue // written by an earlier release, without the last field
			}
			if got, err := parsePresence(append([]byte{}, value[:n]...)); err == nil {
				t.Errorf("%d of %d bytes were read as %+v", n, len(value), got)
			}
		}
		if got, err := parsePresence(append(value, 0)); err == nil {
			t.Errorf("a byte too many was read as %+v", got)
		}
	})
}
