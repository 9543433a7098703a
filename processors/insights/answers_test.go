package insights

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

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
		if a, err = packed.Decode[activity](packed.Encode(&a)); err != nil {
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
		expect.Equal(t, [2]day{a.first, a.last}, [2]day{slices.Min(days), slices.Max(days)}, "first and last of %v", days)
		for d := today - 720; d <= today+2; d++ {
			expect.Equal(t, a.active(d), slices.Contains(kept, d), "day %d is active", d-today)
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
	whole := packed.Encode(&a)
	for n := range whole {
		expect.Fails(t, expect.ErrorOf(packed.Decode[activity](whole[:n])), "%d of %d bytes", n, len(whole))
	}
	h := hours{3: {4: 300}}
	whole = packed.Encode(&h)
	if got, err := packed.Decode[hours](whole); err != nil || got != h || got.total() != 300 {
		t.Errorf("hours: got %v, %v", got, err)
	}
	for n := range whole {
		expect.Fails(t, expect.ErrorOf(packed.Decode[hours](whole[:n])), "%d bytes of hours", n)
	}
}

// Counts of a packed row grow from one byte to several, and the others stay.
func TestCountHour_EqualsCountingDecodedHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := hours{2: {5: 63}, 6: {23: 1 << 40}} // 63 is the greatest count of one byte
		row := packed.Encode(&want)
		for _, hour := range rapid.SliceOf(rapid.SampledFrom([]int{0, 53, 54, 167})).Draw(t, "hours") {
			row = must.Get(countHour(row, hour))(t)
			want[hour/24][hour%24]++
		}
		expect.Equal(t, must.Get(packed.Decode[hours](row))(t), want, "hours")
	})
}

func TestCountHour_RejectsCorruptRows(t *testing.T) {
	whole := packed.Encode(&hours{})
	for n := range whole {
		expect.Fails(t, expect.ErrorOf(countHour(whole[:n], 167)), "%d of %d bytes", n, len(whole))
	}
	whole[0]++
	expect.Fails(t, expect.ErrorOf(countHour(whole, 0)), "row of another version")
}

// A row of an earlier version holds a whole day, and comes before the blocks of its day.
func TestSequenceOf_RowWithoutBlock(t *testing.T) {
	whole := sequenceName("user:1", today)
	for _, name := range [][]byte{whole, blockName("user:1", today, 0), blockName("user:1", today, lastBlock)} {
		if user, d := sequenceOf(name); string(user) != "user:1" || d != today || bytes.Compare(name, whole) < 0 {
			t.Errorf("%q: got user %q, day %s", name, user, d)
		}
	}
}

// everyone is a set of users in memory.
type everyone map[schemas.UserID][]day

func TestGrowthAndRetention_EqualBruteForce(t *testing.T) {
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
		expect.NoDiff(t, g.days, users.growth(40), "growth")
		expect.NoDiff(t, r.cohorts, users.retention(10), "retention")
	})
}

func (e everyone) growth(n int) []schemas.GrowthDay {
	var all []schemas.GrowthDay
	for d := today - day(n) + 1; d <= today; d++ {
		g := schemas.GrowthDay{Day: d.String()}
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

func (e everyone) retention(n int) []schemas.Cohort {
	var all []schemas.Cohort
	for w := n - 1; w >= 0; w-- {
		monday := today.monday() - day(7*w)
		c := schemas.Cohort{Week: monday.String(), Active: make([]int, w+1)}
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
	var far func(acts []entry, steps []schemas.Verb, from, begun, within schemas.Micros) int
	far = func(acts []entry, steps []schemas.Verb, from, begun, within schemas.Micros) int {
		best := 0
		for i, a := range acts {
			if len(steps) == 0 || a.what != string(steps[0]) || begun >= 0 && a.at-begun > within {
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
		var acts []entry
		at := schemas.Micros(1)
		for range rapid.IntRange(0, 9).Draw(t, "acts") {
			at += schemas.Micros(rapid.IntRange(0, 3).Draw(t, "pause")) * 1e6
			acts = append(acts, entry{at, string(rapid.SampledFrom(verbs).Draw(t, "verb"))})
		}
		steps := rapid.SliceOfN(rapid.SampledFrom(verbs), 1, 4).Draw(t, "steps")
		within := schemas.Micros(rapid.IntRange(1, 8).Draw(t, "within")) * 1e6
		f := newFunnel(steps, within)
		f.add(acts)
		expect.Equal(t, f.far, far(acts, steps, 0, -1, within), "%v in %v of %v", steps, within, acts)
	})
}
