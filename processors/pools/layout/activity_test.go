package layout

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestPresenceComesBackFromItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Activity{
			LastSeen: schemas.Micros(rapid.Int64().Draw(t, "last")), Inactive: rapid.Bool().Draw(t, "away"),
			CheckAt:    schemas.Micros(rapid.Int64().Draw(t, "looks")),
			BackfillID: schemas.Micros(rapid.Int64().Draw(t, "asked")), Expected: rapid.IntRange(0, 1<<30).Draw(t, "want"),
		}
		want.Received = rapid.IntRange(0, want.Expected).Draw(t, "came")
		value := AppendActivity(nil, want)
		if got, err := ParseActivity(value); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range len(value) {
			if n == len(value)-8 {
				continue // written by an earlier release, without the last field
			}
			if got, err := ParseActivity(append([]byte{}, value[:n]...)); err == nil {
				t.Errorf("%d of %d bytes were read as %+v", n, len(value), got)
			}
		}
		if got, err := ParseActivity(append(value, 0)); err == nil {
			t.Errorf("a byte too many was read as %+v", got)
		}
	})
}
