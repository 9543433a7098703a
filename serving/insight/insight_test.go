package insight

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is a Friday.
var now = time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC)

var today = dayOf(schemas.MicrosOf(now))

func TestDays(t *testing.T) {
	tests := map[string]struct {
		at      time.Time
		day     string
		weekday int
		monday  string
	}{
		"a Friday":         {now, "2026-11-20", 4, "2026-11-16"},
		"a Sunday":         {now.AddDate(0, 0, 2), "2026-11-22", 6, "2026-11-16"},
		"a Monday":         {now.AddDate(0, 0, 3), "2026-11-23", 0, "2026-11-23"},
		"the epoch":        {time.Unix(0, 0), "1970-01-01", 3, "1969-12-29"},
		"a moment earlier": {time.Unix(0, -1000), "1969-12-31", 2, "1969-12-29"},
	}
	for name, tt := range tests {
		d := dayOf(schemas.MicrosOf(tt.at))
		if d.String() != tt.day || d.weekday() != tt.weekday || d.monday().String() != tt.monday {
			t.Errorf("%s: got %s, weekday %d, Monday %s, want %+v", name, d, d.weekday(), d.monday(), tt)
		}
	}
}

// someDays generates the days of a user, in any order, some repeated.
func someDays(t *rapid.T) []day {
	near := rapid.IntRange(0, 70)
	far := rapid.IntRange(0, 700)
	ages := rapid.SliceOfN(rapid.OneOf(near, near, far, rapid.SampledFrom([]int{27, 28, 29, 63, 64, 447, 448})), 1, 25).Draw(t, "ages")
	days := make([]day, len(ages))
	for i, a := range ages {
		days[i] = today - day(a)
	}
	return days
}

func activityOf(t *rapid.T, days []day) *activity {
	a := activity{}
	for _, d := range days {
		a.add(d)
		var err error
		if a, err = decodeActivity(a.encode()); err != nil {
			t.Fatal(err)
		}
	}
	return &a
}

// known returns the days that are kept, ascending: those within KeepDays of the newest.
func known(days []day) []day {
	newest := slices.Max(days)
	days = slices.DeleteFunc(slices.Clone(days), func(d day) bool { return newest-d >= KeepDays })
	slices.Sort(days)
	return slices.Compact(days)
}

func TestActivity_IsASetOfDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := someDays(t)
		a, kept := activityOf(t, days), known(days)
		if a.first != slices.Min(days) || a.last != slices.Max(days) || a.days() != len(kept) {
			t.Fatalf("first %d, last %d, %d days of %v", a.first, a.last, a.days(), days)
		}
		for d := today - 720; d <= today+2; d++ {
			if got, want := a.active(d), slices.Contains(kept, d); got != want {
				t.Fatalf("day %d: active %v, want %v", d-today, got, want)
			}
			var want *day
			for _, k := range append([]day{slices.Min(days)}, kept...) {
				if k < d && (want == nil || k > *want) {
					want = &k
				}
			}
			got, ok := a.before(d)
			if ok != (want != nil) || ok && got != *want {
				t.Fatalf("before day %d: got %d, %v, want %v", d-today, got-today, ok, want)
			}
		}
	})
}

func TestDecode_RejectsTruncatedRows(t *testing.T) {
	a := activity{}
	a.add(today)
	a.add(today - 100)
	whole := a.encode()
	for n := 1; n < len(whole); n++ {
		if _, err := decodeActivity(whole[:n]); err == nil {
			t.Errorf("decoded %d of %d bytes, want an error", n, len(whole))
		}
	}
	p := Popular{}
	p.Hours[3][4] = 300
	for n := 1; n < len(p.encode()); n++ {
		if _, err := decodeHours(p.encode()[:n]); err == nil {
			t.Errorf("decoded %d bytes of hours, want an error", n)
		}
	}
}

// everyone is a set of users in memory.
type everyone map[schemas.UserID][]day

func TestService_GrowthAndRetentionEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := everyone{}
		for u := range rapid.IntRange(0, 12).Draw(t, "users") {
			days := someDays(t)
			users[schemas.UserID(fmt.Sprint("user:", u))] = known(days) // so that the first day is among the kept ones, too
		}
		g, r := newGrowth(today, 40), newRetention(today, 10)
		for _, days := range users {
			a := activityOf(t, days)
			g.add(a)
			r.add(a)
		}
		if diff := cmp.Diff(users.growth(40), g.days); diff != "" {
			t.Fatalf("growth (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(users.retention(10), r.cohorts); diff != "" {
			t.Fatalf("retention (-want +got):\n%s", diff)
		}
	})
}

func (e everyone) growth(n int) []GrowthDay {
	var all []GrowthDay
	for d := today - day(n) + 1; d <= today; d++ {
		g := GrowthDay{Day: d.String()}
		for _, days := range e {
			in := func(from, to day) bool {
				return slices.ContainsFunc(days, func(x day) bool { return x >= from && x <= to })
			}
			acted, before := in(d, d), in(-1<<30, d-1)
			if acted {
				g.Daily++
			}
			if in(d-27, d) {
				g.Active++
			}
			if acted && !before {
				g.New++
			}
			if acted && before && !in(d-27, d-1) {
				g.Resurrected++
			}
			if in(d-28, d-28) && !in(d-27, d) {
				g.Dormant++
			}
		}
		all = append(all, g)
	}
	return all
}

func (e everyone) retention(n int) []Cohort {
	var all []Cohort
	for w := n - 1; w >= 0; w-- {
		monday := today.monday() - day(7*w)
		c := Cohort{Week: monday.String(), Active: make([]int, w+1)}
		for _, days := range e {
			if slices.Min(days).monday() != monday {
				continue
			}
			c.Users++
			for i := range c.Active {
				if slices.ContainsFunc(days, func(d day) bool { return d.monday() == monday+day(7*i) }) {
					c.Active[i]++
				}
			}
		}
		all = append(all, c)
	}
	return all
}

// A funnel finds the largest number of steps that any selection of actions reaches.
func TestFunnel_EqualsBruteForce(t *testing.T) {
	verbs := []schemas.Verb{"view", "click", "save"}
	var far func(acts []act, steps []schemas.Verb, from, begun, within schemas.Micros) int
	far = func(acts []act, steps []schemas.Verb, from, begun, within schemas.Micros) int {
		best := 0
		for i, a := range acts {
			if len(steps) == 0 || a.verb != steps[0] || begun >= 0 && a.at-begun > within {
				continue
			}
			start := begun
			if start < 0 {
				start = a.at
			}
			best = max(best, 1+far(acts[i+1:], steps[1:], a.at, start, within))
		}
		return best
	}
	rapid.Check(t, func(t *rapid.T) {
		var acts []act
		at := schemas.Micros(1)
		for range rapid.IntRange(0, 9).Draw(t, "acts") {
			at += schemas.Micros(rapid.IntRange(0, 3).Draw(t, "pause")) * 1e6
			acts = append(acts, act{at, rapid.SampledFrom(verbs).Draw(t, "verb")})
		}
		steps := rapid.SliceOfN(rapid.SampledFrom(verbs), 1, 4).Draw(t, "steps")
		within := time.Duration(rapid.IntRange(1, 8).Draw(t, "within")) * time.Second
		f := newFunnel(steps, within)
		f.add([]byte("user:1"), acts)
		if got, want := f.far, far(acts, steps, 0, -1, schemas.Micros(within.Microseconds())); got != want {
			t.Fatalf("%v in %v of %v: got %d, want %d", steps, within, acts, got, want)
		}
	})
}

// The store keeps actions by day and user. A funnel reads them by user, in any order of arrival.
func TestFunnel_ReadsUserByUser(t *testing.T) {
	s := openTest(t, t.TempDir())
	random := rand.New(rand.NewPCG(1, 2))
	steps, days := []schemas.Verb{"view", "click", "save"}, 6
	acted := map[schemas.UserID][]act{}
	for offset := range int64(30) {
		var records []Applied
		for p := range int32(50) {
			ago := time.Duration(random.IntN(24*(days+2))) * time.Hour // some before the requested days
			a := did(schemas.UserID(fmt.Sprint("user:", random.IntN(40))), append(steps, "hide")[random.IntN(4)], ago-2*time.Minute)
			records = append(records, Applied{Partition: p, Offset: offset, Action: a})
			if dayOf(a.Timestamp) > today-day(days) {
				acted[a.Actor] = append(acted[a.Actor], act{a.Timestamp, a.Verb})
			}
		}
		must.OK(t, s.Apply(records, offsetsAfter(records)))
	}
	const within = 30 * time.Hour
	want := newFunnel(steps, within)
	for user, acts := range acted {
		slices.SortStableFunc(acts, func(a, b act) int { return stdcmp.Compare(a.at, b.at) })
		want.add([]byte(user), acts)
	}
	got, err := NewService(DefaultConfig(), s, deletedUsers{}, func() time.Time { return now }).Funnel(t.Context(), steps, within, days)
	if diff := cmp.Diff(want.steps, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if users := want.steps; users[0].Users != len(acted) || users[2].Users == 0 || users[2].Users == users[0].Users {
		t.Errorf("%v of %d users: want some users at each step", users, len(acted))
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.eachDay(expired, today-20, today+1, steps, func([]byte, []act) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the deadline: got %v", err)
	}
}

// If a user has more actions on a day than a person can, the remaining ones are dropped.
func TestStore_BoundsSequenceOfADay(t *testing.T) {
	s := openTest(t, t.TempDir())
	verb := schemas.Verb(strings.Repeat("v", 60))
	var records []Applied
	for i := range int64(3000) {
		records = append(records, Applied{Offset: i, Action: did("user:robot", verb, time.Minute)})
	}
	records = append(records, Applied{Offset: 3000, Action: did("user:robot", "save", 24*time.Hour)})
	must.OK(t, s.Apply(records, offsetsAfter(records)))
	var row []byte
	err := s.db.Use(func(db *pebble.DB) (err error) {
		row, err = stored.Row(db, sequenceKey(today, "user:robot"))
		return err
	})
	if err != nil || len(row) > maxSequence || len(row) < maxSequence-100 {
		t.Errorf("a row of %d bytes, %v: want nearly %d", len(row), err, maxSequence)
	}
	funnel, err := NewService(DefaultConfig(), s, deletedUsers{}, func() time.Time { return now }).Funnel(t.Context(), []schemas.Verb{"save", verb}, 48*time.Hour, 2)
	if diff := cmp.Diff([]FunnelStep{{"save", 1}, {verb, 1}}, funnel); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

type deletedUsers map[schemas.UserID]bool

func (g deletedUsers) Has(u schemas.UserID) bool { return g[u] }

func openTest(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// did returns an action of a user, ago before now, on a pin with the interests.
func did(user schemas.UserID, verb schemas.Verb, ago time.Duration, interests ...schemas.InterestID) *schemas.EnrichedAction {
	return &schemas.EnrichedAction{
		Actor: user, Verb: verb, Timestamp: schemas.MicrosOf(now.Add(-ago)),
		ObjectAttributes: schemas.ObjectAttributes{Facets: schemas.Facets{Interests: interests}},
	}
}

// offsetsAfter returns the applied offsets after the records.
func offsetsAfter(records []Applied) map[int32]topics.PartitionCheckpoint {
	to := map[int32]topics.PartitionCheckpoint{}
	for _, r := range records {
		to[r.Partition] = topics.PartitionCheckpoint{Next: r.Offset + 1}
	}
	return to
}

func TestStore_CountsEachRecordOnce(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	const day = 24 * time.Hour
	actions := []*schemas.EnrichedAction{
		did("user:1", "view", time.Hour, "interest:a", "interest:a"), did("user:1", "save", 2*time.Hour, "interest:b", "interest:a"),
		nil, // one that could not be read
		did("user:1", "view", 3*time.Hour, "interest:a"), did("user:2", "view", 40*day), did("user:2", "save", day), did("user:gone", "view", 0, "interest:a"),
	}
	var records []Applied
	for i, a := range actions {
		records = append(records, Applied{Partition: int32(i % 2), Offset: int64(i / 2), Action: a})
	}
	apply := func(records []Applied) {
		t.Helper()
		must.OK(t, s.Apply(records, offsetsAfter(records)))
	}
	apply(records[:4])
	apply(records[:6]) // uncommitted records are read again
	must.OK(t, s.Close())
	s = openTest(t, dir)
	apply(records)
	service := NewService(DefaultConfig(), s, deletedUsers{"user:gone": true}, func() time.Time { return now })

	growth, err := service.Growth(t.Context(), 2)
	want := []GrowthDay{
		{Day: "2026-11-19", Daily: 1, Active: 1, Resurrected: 1}, {Day: "2026-11-20", New: 1, Daily: 1, Active: 2},
	}
	if diff := cmp.Diff(want, growth); err != nil || diff != "" {
		t.Errorf("growth, %v (-want +got):\n%s", err, diff)
	}
	xd28s, err := service.Xd28s(t.Context())
	if err != nil || len(xd28s) != 28 || xd28s[0] != (Xd28{1, 2}) {
		t.Errorf("xd28s: got %v, %v", xd28s, err)
	}
	cohorts, err := service.Retention(t.Context(), 1)
	if err != nil || len(cohorts) != 1 || cohorts[0].Users != 1 {
		t.Errorf("retention: got %v, %v", cohorts, err)
	}
	funnel, err := service.Funnel(t.Context(), []schemas.Verb{"view", "save"}, 90*time.Minute, 3)
	if diff := cmp.Diff([]FunnelStep{{"view", 1}, {"save", 1}}, funnel); err != nil || diff != "" {
		t.Errorf("funnel, %v (-want +got):\n%s", err, diff)
	}
	popular, err := service.Popularity(t.Context(), 1)
	if err != nil || len(popular) != 1 || popular[0].Interest != "interest:a" || popular[0].Actions != 4 || popular[0].Hours[4][14] != 1 {
		t.Errorf("popularity: got %+v, %v", popular, err)
	}
	must.OK(t, s.Sweep(now, 1))
	if funnel, err = service.Funnel(t.Context(), []schemas.Verb{"save"}, time.Hour, 3); err != nil || funnel[0].Users != 1 {
		t.Errorf("funnel after yesterday has expired: got %v, %v", funnel, err)
	}
}

// erasedUsers is a set of deleted users.
type erasedUsers []string

func (e erasedUsers) Each(visit func(string, *schemas.DeletedUser)) {
	for _, user := range e {
		visit(user, nil)
	}
}

// Rows of erased users are deleted, not only left out of answers: answers lack them even with an empty set of deleted
// users.
func TestErase_DeletesOnlyRowsOfTheUser(t *testing.T) {
	s := openTest(t, t.TempDir())
	records := []Applied{
		{Offset: 0, Action: did("user:1", "save", 0, "interest:a")}, {Offset: 1, Action: did("user:1", "save", 30*time.Hour, "interest:a")},
		{Offset: 2, Action: did("user:10", "save", 0, "interest:a")},
	}
	must.OK(t, s.Apply(records, offsetsAfter(records)))
	sink, err := NewSink(DefaultConfig(), SinkDeps{
		Store: s, Now: func() time.Time { return now }, Deleted: erasedUsers{"user:1", "user:unknown"},
	})
	must.OK(t, err)
	for range 2 { // a repeat changes nothing
		must.OK(t, sink.sweep())
	}
	service := NewService(DefaultConfig(), s, deletedUsers{}, func() time.Time { return now })
	xd28s, err := service.Xd28s(t.Context())
	if err != nil || xd28s[0].Users != 1 || xd28s[1].Users != 0 {
		t.Errorf("users by days: %+v, %v, want one user of one day", xd28s[:2], err)
	}
	funnel, err := service.Funnel(t.Context(), []schemas.Verb{"save"}, time.Hour, 5)
	if err != nil || funnel[0].Users != 1 {
		t.Errorf("funnel: %+v, %v, want one user", funnel, err)
	}
	popular, err := service.Popularity(t.Context(), 1)
	if err != nil || popular[0].Actions != 3 {
		t.Errorf("popularity: %+v, %v, want that anonymous counts stay", popular, err)
	}
}

// Only the requested number of interests is in memory.
func TestPopularity_KeepsTheMostPopular(t *testing.T) {
	const interests = 5000
	random := rand.New(rand.NewPCG(1, 2))
	s := openTest(t, t.TempDir())
	counts := map[schemas.InterestID]uint64{}
	var records []Applied
	for i := range 6 { // so that many have the same number of actions
		var some []schemas.InterestID
		for n := range interests {
			if id := schemas.InterestID(fmt.Sprint("interest:", n)); i == 0 || random.IntN(2) == 0 {
				some = append(some, id)
				counts[id]++
			}
		}
		records = append(records, Applied{Offset: int64(i), Action: did("user:1", "save", 0, some...)})
	}
	must.OK(t, s.Apply(records, offsetsAfter(records)))
	service := NewService(DefaultConfig(), s, deletedUsers{}, func() time.Time { return now })
	want := slices.SortedFunc(maps.Keys(counts), func(a, b schemas.InterestID) int {
		return stdcmp.Or(stdcmp.Compare(counts[b], counts[a]), stdcmp.Compare(a, b))
	})
	for _, limit := range []int{1, 2, 10, MaxPopular} {
		popular, err := service.Popularity(t.Context(), limit)
		if err != nil || len(popular) != limit || cap(popular) > 2*limit {
			t.Fatalf("%d of %d in a list of %d, %v", len(popular), limit, cap(popular), err)
		}
		for i, p := range popular {
			if p.Interest != want[i] || p.Actions != counts[want[i]] || p.Hours[4][15] != p.Actions {
				t.Fatalf("%d of %d: %s with %d, want %s with %d", i, limit, p.Interest, p.Actions, want[i], counts[want[i]])
			}
		}
	}
}

func TestService_RejectsOutOfRange(t *testing.T) {
	service := NewService(DefaultConfig(), openTest(t, t.TempDir()), deletedUsers{}, func() time.Time { return now })
	_, growth := service.Growth(t.Context(), MaxDays+1)
	_, retention := service.Retention(t.Context(), 0)
	_, steps := service.Funnel(t.Context(), nil, time.Hour, 1)
	_, days := service.Funnel(t.Context(), []schemas.Verb{"view"}, time.Hour, 36)
	_, within := service.Funnel(t.Context(), []schemas.Verb{"view"}, 0, 1)
	_, popular := service.Popularity(t.Context(), MaxPopular+1)
	for name, err := range map[string]error{"growth": growth, "retention": retention, "steps": steps, "days": days, "within": within, "popular": popular} {
		if _, ok := err.(*RequestError); !ok {
			t.Errorf("%s: got %v, want a RequestError", name, err)
		}
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("a zero configuration is valid")
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}
