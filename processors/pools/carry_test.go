package pools

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestCarry(t *testing.T) {
	const day = 24 * time.Hour
	created := schemas.Micros(1_700_000_000_000_000)
	candidate := func(source schemas.Source, halfLife time.Duration) (row, value []byte) {
		row = layout.AppendCandidate(nil, layout.KindFirstVersion, source, score.Weighted(score.Base(0.2, created, halfLife), 1), "pin:1", 1)
		return row, ranked.AppendBody(nil, &schemas.PinContent{Created: created})
	}
	rowOfSource := func(source schemas.Source) []byte { row, _ := candidate(source, day); return row }
	neighbor, body := candidate(schemas.Related, day)
	foreign, foreignBody := candidate(schemas.Related, day+time.Hour)
	tests := []struct {
		name       string
		carry      Carry
		row, value []byte
		want       bool
		left       int
	}{
		{"seen pin", Carry{}, layout.RowName(layout.KindSeen, schemas.PinID("pin:1")), []byte{1}, true, 0},
		{"expired pins", Carry{}, []byte{layout.KindExpired}, []byte("pin:1"), true, 0},
		{"candidate of a followee", Carry{}, rowOfSource(schemas.Following), body, false, 0},
		{"its deletion", Carry{}, rowOfSource(schemas.Following), nil, false, 0},
		{"other source", Carry{Source: schemas.FromInterest}, rowOfSource(schemas.Following), body, true, 0},
		{"selected source", Carry{Source: schemas.FromInterest}, rowOfSource(schemas.FromInterest), body, false, 0},
		{"external offer", Carry{HalfLife: day}, rowOfSource("shop"), body, true, 0},
		{"a neighbor", Carry{HalfLife: day}, neighbor, body, true, 0},
		{"neighbor with another half-life", Carry{HalfLife: day}, foreign, foreignBody, false, 1},
		{"neighbor without a half-life", Carry{}, foreign, foreignBody, true, 0},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := c.carry.Keep([]byte("user:1"), c.row, c.value); got != c.want || c.carry.Excluded() != c.left {
				t.Errorf("got %v, %d excluded, want %v, %d", got, c.carry.Excluded(), c.want, c.left)
			}
		})
	}
	c := Carry{HalfLife: day}
	c.Keep([]byte("user:1"), foreign, foreignBody)
	c.Keep([]byte("user:2"), foreign, foreignBody)
	if c.Keep([]byte("user:1"), foreign, nil); c.Excluded() != 1 {
		t.Errorf("%d excluded after a deletion, want 1", c.Excluded())
	}
}
