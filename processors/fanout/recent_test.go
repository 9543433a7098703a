package fanout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

var bowl = schemas.PinVersion{
	Pin: "pin:bowl", Version: 7, Created: 5e6, Quality: 2,
	Facets: schemas.Facets{Author: "user:ada", Board: "board:clay", Interests: []schemas.InterestID{"interest:ceramics"}},
}

func TestRecentKnowsWhoseThePinIs(t *testing.T) {
	for followee, gone := range map[schemas.Followee]bool{
		"user:ada": false, "board:clay": false, "interest:ceramics": false,
		"user:bob": true, "board:wood": true, "interest:wood": true,
	} {
		r := recentOf(&schemas.Publication{Followee: followee, PinVersion: bowl}, time.Second)
		if r.gone != gone {
			t.Errorf("%s: gone %v, want %v", followee, r.gone, gone)
		}
	}
	deleted := bowl
	deleted.Deleted = true
	if r := recentOf(&schemas.Publication{Followee: "user:ada", PinVersion: deleted}, time.Second); !r.gone {
		t.Error("a deleted pin is not gone")
	}
}

func TestRecentComesBackFromItsRow(t *testing.T) {
	r := recentOf(&schemas.Publication{Followee: "board:wood", PinVersion: bowl}, time.Second)
	row, value := string(recentRow(r.Score, r.Pin)), string(appendRecent(nil, &r))
	got, err := parseRecent(row, value)
	if err != nil {
		t.Fatal(err)
	}
	want := recent{gone: true, DeliveredPin: schemas.DeliveredPin{
		Pin: "pin:bowl", Version: 7, Facets: bowl.Facets, Created: 5e6, Score: score.Base(2, 5e6, time.Second),
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(recent{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := range len(value) {
		if got, err := parseRecent(row, value[:n]); err == nil {
			t.Errorf("%d of %d bytes were read as %+v", n, len(value), got)
		}
	}
	if got, err := parseRecent(row[:9], value); err == nil {
		t.Errorf("a name without a pin was read as %+v", got)
	}
}

func TestSurplusCountsThoseGoneByThemselves(t *testing.T) {
	s := surplus{cap: 2}
	var got []bool
	for _, gone := range []bool{false, true, true, true, false, false} {
		got = append(got, s.over(gone))
	}
	if diff := cmp.Diff([]bool{false, false, false, true, false, true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPortionsHoldAllAndFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := schemas.InterestID(strings.Repeat("i", 250))
		pins := make([]schemas.DeliveredPin, rapid.IntRange(0, 700).Draw(t, "pins"))
		for i := range pins {
			pins[i].Version = schemas.Version(i)
			for range rapid.SampledFrom([]int{0, 1, 64}).Draw(t, "interests") {
				pins[i].Interests = append(pins[i].Interests, long)
			}
		}
		next := 0
		for _, portion := range portions(pins) {
			bytes := 0
			for i := range portion {
				if got := int(portion[i].Version); got != next {
					t.Fatalf("pin %d where %d is due", got, next)
				}
				next++
				bytes += pinBytes(&portion[i])
			}
			if len(portion) == 0 || len(portion) > 250 || bytes > 256<<10 {
				t.Errorf("%d pins of %d bytes", len(portion), bytes)
			}
		}
		if next != len(pins) {
			t.Errorf("%d of %d pins", next, len(pins))
		}
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
	err := Config{HalfLife: time.Second, StepEdges: 3001, Recents: -1}.Validate()
	if got, want := err.Error(), "half_life 1s: from 1m to 8760h\nstep_edges 3001: from 1 to 3000\nrecents -1: from 1 to 10000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
