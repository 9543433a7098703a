package pools

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
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
	}{
		{"seen pin", Carry{}, rows.Name(layout.KindSeen, schemas.PinID("pin:1")), []byte{1}, true},
		{"expired pins", Carry{}, []byte{layout.KindExpired}, []byte("pin:1"), true},
		{"candidate of a followee", Carry{}, rowOfSource(schemas.Following), body, false},
		{"its deletion", Carry{}, rowOfSource(schemas.Following), nil, false},
		{"other source", Carry{Source: schemas.FromInterest}, rowOfSource(schemas.Following), body, true},
		{"selected source", Carry{Source: schemas.FromInterest}, rowOfSource(schemas.FromInterest), body, false},
		{"external offer", Carry{HalfLife: day}, rowOfSource("shop"), body, true},
		{"a neighbor", Carry{HalfLife: day}, neighbor, body, true},
		{"neighbor with another half-life", Carry{HalfLife: day}, foreign, foreignBody, false},
		{"its deletion", Carry{HalfLife: day}, foreign, nil, true},
		{"neighbor without a half-life", Carry{}, foreign, foreignBody, true},
	}
	for _, c := range tests {
		expect.Equal(t, c.carry.Keep([]byte("user:1"), c.row, c.value), c.want, "%s", c.name)
	}
}
