package simulate

import (
	"context"
	"iter"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxBoards is the maximum of Config.BoardsPerUser.
const maxBoards = 12

// noon is the start time of the live events.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// first returns the initial events.
func first(cfg Config) iter.Seq[schemas.Line] {
	w := newWorld(cfg)
	return load.Concat(w.users(), w.follows(), w.pins(noon()))
}

// acting returns n live events, one per second.
func acting(cfg Config, run string, n int) iter.Seq[schemas.Line] {
	seconds := func(yield func(time.Time) bool) {
		for i := range n {
			if !yield(noon().Add(time.Duration(i) * time.Second)) {
				return
			}
		}
	}
	return newLive(newWorld(cfg), run).all(seconds)
}

func eventOf(line schemas.Line) schemas.Event {
	return reflect.ValueOf(line.Event).Elem().FieldByName("Event").Interface().(schemas.Event)
}

// text returns events as lines of JSON.
func text(t *testing.T, lines iter.Seq[schemas.Line]) []string {
	t.Helper()
	var all []string
	for line := range lines {
		json := must.Get(schemas.AppendLine(nil, line))(t)
		all = append(all, string(json))
	}
	return all
}

func TestWorld_EventsAreValidAndUnique(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
	}{
		{"default", DefaultConfig()},
		{"smallest", Config{Users: 2, Interests: 1}},
		{"pins without boards", Config{Users: 3, Interests: 2, Pins: 50}},
		{"many boards", Config{Users: 5, BoardsPerUser: maxBoards, Interests: 3, Pins: 50}},
		{"more than words", Config{Users: 250, BoardsPerUser: 2, Interests: 150, Pins: 500, Seed: math.MaxUint64}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.OK(t, test.cfg.Validate())
			ids := map[string]bool{}
			for line := range load.Concat(first(test.cfg), acting(test.cfg, "run", 2000)) {
				e := eventOf(line)
				must.OK(t, line.Validate(schemas.MicrosOf(noon().Add(time.Hour)), schemas.DefaultVerbs()))
				if ids[e.ID] {
					t.Fatalf("duplicate event id %s", e.ID)
				}
				if ids[e.ID] = true; schemas.ID(e.Actor) == e.Object && line.Stream == schemas.StreamFollows {
					t.Fatalf("%s: %s follows itself", e.ID, e.Actor)
				}
			}
		})
	}
}

func TestWorld_IsDeterminedBySeed(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Users, cfg.Pins = 50, 200
	expect.NoDiff(t, text(t, first(cfg)), text(t, first(cfg)), "same seed, different initial events")
	expect.NoDiff(t, text(t, acting(cfg, "a", 500)), text(t, acting(cfg, "a", 500)), "same run, different live events")
	other := cfg
	other.Seed++
	expect.False(t, slices.Equal(text(t, first(cfg)), text(t, first(other))), "another seed has the same initial events")
	expect.False(t, slices.Equal(text(t, acting(cfg, "a", 500)), text(t, acting(cfg, "b", 500))), "another run has the same live events")
}

func TestLive_RunsShareNoIDs(t *testing.T) {
	cfg := DefaultConfig()
	seen := map[string]string{}
	for _, run := range []string{"a", "b"} {
		for line := range acting(cfg, run, 1000) {
			e := eventOf(line)
			names := []string{e.ID}
			if e.Verb == schemas.Create {
				names = append(names, string(e.Object))
			}
			for _, name := range names {
				if in, ok := seen[name]; ok {
					t.Fatalf("id %s is in run %s and in run %s", name, in, run)
				}
				seen[name] = run
			}
		}
	}
}

func TestWorld_ReloadChangesOnlyCreationTimes(t *testing.T) {
	w := newWorld(DefaultConfig())
	again, stop := iter.Pull(w.pins(noon().Add(72 * time.Hour)))
	defer stop()
	for line := range w.pins(noon()) {
		later, _ := again()
		a, b := *line.Event.(*schemas.PinEvent), *later.Event.(*schemas.PinEvent)
		expect.Equal(t, b.Time-a.Time, schemas.Micros(72*time.Hour/time.Microsecond), "%s moved, in µs", a.ID)
		b.Time = a.Time
		expect.NoDiff(t, b, a, "%s", a.ID)
	}
	for line := range load.Concat(w.users(), w.follows()) {
		e := eventOf(line)
		expect.Equal(t, e.Time, founded, "time of %s", e.ID)
	}
}

func TestPins_AscendByTime(t *testing.T) {
	var last schemas.Micros
	oldest := schemas.MicrosOf(noon().Add(-past))
	for line := range newWorld(DefaultConfig()).pins(noon()) {
		e := eventOf(line)
		if e.Time <= last || e.Time < oldest || e.Time >= schemas.MicrosOf(noon()) {
			t.Fatalf("%s has time %s, before the previous event's %s", e.ID, e.Time.Time(), last.Time())
		}
		last = e.Time
	}
}

func TestFollows_MatchConfig(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Users, cfg.BoardsPerUser, cfg.Follows, cfg.Star = 1000, 0, 4, 700
	w, followers, follows := newWorld(cfg), 0, 0
	for person := range cfg.Users {
		list := w.followees(person)
		follows += len(list)
		if slices.Contains(list, schemas.ID(w.user(0))) {
			followers++
		}
		expect.AtMost(t, len(list), 5, "users that %s follows", w.user(person))
	}
	expect.AtLeast(t, followers, 700, "followers of the first of 1000 users")
	expect.AtLeast(t, follows, 3500, "follows, about 4 per user")
}

func TestLive_ActsOnFollowedInterests(t *testing.T) {
	cfg := DefaultConfig()
	w := newWorld(cfg)
	interests := map[schemas.ID][]schemas.InterestID{}
	tastes := map[schemas.UserID][]schemas.InterestID{}
	for person := range cfg.Users {
		tastes[w.user(person)] = w.interestsOf(w.tastes(person))
	}
	authors := map[schemas.ID]schemas.UserID{}
	liked, actions, byStream := 0, 0, map[string]int{}
	for line := range load.Concat(w.pins(noon()), acting(cfg, "run", 20_000)) {
		e := eventOf(line)
		byStream[line.Stream]++
		if pin, ok := line.Event.(*schemas.PinEvent); ok {
			interests[e.Object], authors[e.Object] = pin.Interests, e.Actor
		}
		if line.Stream != schemas.StreamActions {
			continue
		}
		if authors[e.Object] == e.Actor || authors[e.Object] == "" {
			t.Fatalf("%s: %s acts on %s by %q", e.ID, e.Actor, e.Object, authors[e.Object])
		}
		actions++
		if slices.ContainsFunc(interests[e.Object], func(i schemas.InterestID) bool { return slices.Contains(tastes[e.Actor], i) }) {
			liked++
		}
	}
	expect.AtLeast(t, float64(liked)/float64(actions), 0.75, "share of the actions on pins of the actor's interests")
	live := map[string]int{"pins": byStream["pins"] - cfg.Pins, "follows": byStream["follows"], "actions": actions}
	want := map[string]int{"pins": 1200, "follows": 1100, "actions": 17_700} // of 20,000
	for stream, n := range want {
		expect.Near(t, float64(live[stream]), float64(n), 0.15*float64(n), "events of %s", stream)
	}
}

func TestEmbedding_SimilarItemsAreClose(t *testing.T) {
	w := newWorld(DefaultConfig())
	r := w.random("test", 0)
	dot := func(a, b []float32) (sum float64) {
		for d := range a {
			sum += float64(a[d]) * float64(b[d])
		}
		return sum
	}
	a, b, other := w.embedding(r, []int{1}), w.embedding(r, []int{1}), w.embedding(r, []int{2})
	expect.Equal(t, len(a), dimensions, "dimensions")
	expect.Near(t, dot(a, a), 1, 1e-5, "squared length")
	expect.AtLeast(t, dot(a, b), 0.7, "similarity for the same interest")
	expect.AtMost(t, dot(a, other), dot(a, b), "similarity for another interest")
}

func TestLive_BoundsPinsPerInterest(t *testing.T) {
	l := newLive(newWorld(Config{Users: 2, Interests: 1, Pins: 10}), "run")
	for range 5 * shelfPins {
		l.post(0, 0)
	}
	expect.AtMost(t, len(l.shelves[0]), 2*shelfPins, "pins of an interest")
}

func TestTicks_KeepRate(t *testing.T) {
	n := 0
	for range ticks(t.Context(), 0) { // without a limit
		if n++; n == 100_000 {
			break
		}
	}
	for _, perSecond := range []float64{0.5, 50, 2000} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			n := 0.0
			for range ticks(ctx, perSecond) {
				n++
			}
			expect.Near(t, n, 20*perSecond, 1+20*perSecond/50, "ticks in 20 s at %g per second", perSecond)
		})
	}
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	err := Config{Users: 1, BoardsPerUser: 13, Interests: 0, Pins: -1, Rate: math.NaN(), Follows: 101, Star: 1}.Validate()
	for _, want := range []string{"users: 1:", "boards_per_user: 13:", "interests: 0:", "pins: -1:", "rate: NaN:", "follows: 101:", "star: 1:"} {
		expect.Error(t, err, want, "Validate")
	}
}
