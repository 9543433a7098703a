package fanout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

var bowl = schemas.PinVersion{
	Pin: "pin:bowl", Version: 7, PinContent: schemas.PinContent{Created: 5e6, Facets: schemas.Facets{Author: "user:ada", Board: "board:clay", Interests: []schemas.InterestID{"interest:ceramics"}}}, Quality: 2,
}

func TestRecentOf_Withdrawn(t *testing.T) {
	for followee, withdrawn := range map[schemas.Followee]bool{
		"user:ada": false, "board:clay": false, "interest:ceramics": false,
		"user:bob": true, "board:wood": true, "interest:wood": true,
	} {
		r := recentOf(&schemas.Publication{Followee: followee, PinVersion: bowl}, time.Second)
		expect.Equal(t, r.withdrawn, withdrawn, "%s: withdrawn", followee)
	}
	deleted := bowl
	deleted.Deleted = true
	r := recentOf(&schemas.Publication{Followee: "user:ada", PinVersion: deleted}, time.Second)
	expect.True(t, r.withdrawn, "a deleted pin is withdrawn")
}

func TestParseRecent_RoundTrip(t *testing.T) {
	r := recentOf(&schemas.Publication{Followee: "board:wood", PinVersion: bowl}, time.Second)
	row, value := string(r.row()), string(appendRecent(nil, &r))
	got := must.Get(parseRecent(row, value))(t)
	want := recent{withdrawn: true, DeliveredPin: schemas.DeliveredPin{
		Pin: "pin:bowl", Version: 7, PinContent: schemas.PinContent{Facets: bowl.Facets, Created: 5e6}, BaseScore: score.Base(2, 5e6, time.Second),
	}}
	expect.NoDiffBut(t, cmp.AllowUnexported(recent{}), got, want, "recent pins")
	for n := range len(value) {
		expect.Fails(t, expect.ErrorOf(parseRecent(row, value[:n])), "%d of %d bytes", n, len(value))
	}
	expect.Fails(t, expect.ErrorOf(parseRecent(row[:9], value)), "name without a pin")
}
