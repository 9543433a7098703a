package fanout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
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
	row, value := string(r.row()), string(appendRecent(nil, &r))
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

func TestKnownComesBackFromItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := known{
			version: schemas.Version(rapid.Int64().Draw(t, "version")), score: rapid.Float64().Draw(t, "score"),
			gone: rapid.Bool().Draw(t, "gone"), slot: rapid.IntRange(noSlot, 20_000).Draw(t, "slot"),
		}
		value := appendKnown(nil, want)
		if got, err := parseKnown(value); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range len(value) {
			if got, err := parseKnown(value[:n]); err == nil && got.slot == want.slot {
				t.Errorf("%d of %d bytes were read as %+v", n, len(value), got)
			}
		}
	})
}

func TestStateComesBackFromItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(0, 1<<40)
		flag := rapid.Bool()
		want := state{
			followers: number.Draw(t, "followers"), away: number.Draw(t, "away"), steps: rapid.Uint64Range(0, 1<<60).Draw(t, "steps"),
			busy: flag.Draw(t, "busy"), spread: flag.Draw(t, "spread"), moving: flag.Draw(t, "moving"),
			pulled: flag.Draw(t, "pulled"), slotted: flag.Draw(t, "slotted"), published: flag.Draw(t, "published"),
			withdrawn: flag.Draw(t, "withdrawn"), weighed: flag.Draw(t, "weighed"), filling: flag.Draw(t, "filling"), back: number.Draw(t, "back"),
			slots: number.Draw(t, "slots"), here: number.Draw(t, "here"), gone: number.Draw(t, "gone"),
		}
		value := appendState(nil, want)
		if got, err := parseState(value); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range len(value) {
			if got, err := parseState(append([]byte{}, value[:n]...)); err == nil {
				t.Errorf("%d of %d bytes were read as %+v", n, len(value), got)
			}
		}
		if got, err := parseState(append(value, 0)); err == nil {
			t.Errorf("a byte too many was read as %+v", got)
		}
	})
	if got, err := parseState(nil); err != nil || got != (state{}) {
		t.Errorf("no row: %+v, %v, want the zero state", got, err)
	}
}

func TestShardsAreOneAPartition(t *testing.T) {
	for _, partitions := range []int32{1, 4, 64} {
		for p := range partitions {
			name := shardOf("board:b", p, partitions)
			if got := topics.Partition(name, partitions); got != p {
				t.Errorf("shard %d of %d is in partition %d", p, partitions, got)
			}
			if followee, shard := followeeOf(name); followee != "board:b" || !shard {
				t.Errorf("%q is of %q, a shard: %v", name, followee, shard)
			}
		}
	}
	if followee, shard := followeeOf("board:b"); followee != "board:b" || shard {
		t.Errorf("the followee itself is of %q, a shard: %v", followee, shard)
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
	err := Config{HalfLife: time.Second, StepEdges: 3001, Recents: -1, PullAbove: -1, SpreadAbove: 2e9}.Validate()
	if got, want := err.Error(), "half_life: 1s: want 1m to 8760h\nstep_edges: 3001: want 1 to 3000\nstep_timeout: 0s: want 1s to 1h\nrecents: -1: want 1 to 10000"+
		"\nbackfill_interval: 0s: want 1s to 24h\npull_above: -1: want 0 to 1000000000\nspread_above: 2000000000: want 0 to 1000000000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
