package insight

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// DormantAfter is the number of days without an action after which a user is dormant.
const DormantAfter = 28

// GrowthDay counts the changes of users' states on one day. A user is new on the day of the first action, active while
// less than DormantAfter days have passed since an action, and otherwise dormant.
type GrowthDay struct {
	Day         string `json:"day"`
	New         int    `json:"new"`         // acted for the first time
	Daily       int    `json:"daily"`       // acted, including the new ones
	Active      int    `json:"active"`      // acted on this day or one of the 27 before it
	Resurrected int    `json:"resurrected"` // acted after having been dormant
	Dormant     int    `json:"dormant"`     // became dormant: their last action is 28 days old
}

// growth counts the changes of the n days up to and including last, oldest first.
type growth struct {
	days []GrowthDay
	last day
}

func newGrowth(last day, n int) *growth {
	g := &growth{days: make([]GrowthDay, n), last: last}
	for i := range g.days {
		g.days[i].Day = g.day(i).String()
	}
	return g
}

func (g *growth) day(i int) day { return g.last - day(len(g.days)-1-i) }

func (g *growth) add(a *activity) {
	for i := range g.days {
		at, d := &g.days[i], g.day(i)
		if a.first > d {
			continue
		}
		before, known := a.before(d)
		switch {
		case a.active(d):
			at.Daily++
			at.Active++
			if a.first == d {
				at.New++
			} else if known && d-before >= DormantAfter {
				at.Resurrected++
			}
		case known && d-before < DormantAfter:
			at.Active++
		case known && d-before == DormantAfter:
			at.Dormant++
		}
	}
}

// Xd28 is the number of users who acted on a given number of the last 28 days. High numbers of days show a habit.
type Xd28 struct {
	Days  int `json:"days"` // 1 to 28
	Users int `json:"users"`
}

// Cohort is the users whose first action was in one week.
type Cohort struct {
	Week  string `json:"week"`  // its Monday
	Users int    `json:"users"` // in it
	// Active is the number of them who acted in that week and in each later week, up to the present one.
	Active []int `json:"active"`
}

// retention holds the cohorts of n weeks up to and including the week of last, oldest first.
type retention struct {
	cohorts []Cohort
	first   day // Monday of the oldest
}

func newRetention(last day, n int) *retention {
	r := &retention{cohorts: make([]Cohort, n), first: last.monday() - day(7*(n-1))}
	for i := range r.cohorts {
		r.cohorts[i] = Cohort{Week: (r.first + day(7*i)).String(), Active: make([]int, n-i)}
	}
	return r
}

func (r *retention) add(a *activity) {
	i := int(a.first.monday()-r.first) / 7
	if a.first < r.first || i >= len(r.cohorts) {
		return
	}
	c := &r.cohorts[i]
	c.Users++
	for w := range c.Active {
		monday := r.first + day(7*(i+w))
		if a.within(monday+6, 7) > 0 {
			c.Active[w]++
		}
	}
}

// FunnelStep is the number of users who reached a step.
type FunnelStep struct {
	Verb  schemas.Verb `json:"verb"`
	Users int          `json:"users"`
}

// funnel counts users who took the steps in order, the last at most within after the first. One action counts for one
// step, and other actions may lie between.
type funnel struct {
	steps  []FunnelStep
	verbs  []schemas.Verb
	within schemas.Micros

	user  []byte           // present user
	begun []schemas.Micros // for each step, the latest start from which it was reached
	far   int              // number of steps reached
}

// never is the start of a step that was not reached.
const never = schemas.Micros(-1 << 62)

func newFunnel(verbs []schemas.Verb, within time.Duration) *funnel {
	f := &funnel{
		steps: make([]FunnelStep, len(verbs)), verbs: verbs, within: schemas.Micros(within.Microseconds()),
		begun: make([]schemas.Micros, len(verbs)),
	}
	for i, v := range verbs {
		f.steps[i].Verb = v
	}
	return f
}

// add adds actions of a user in ascending time. All actions of a user come before those of the next one.
func (f *funnel) add(user []byte, acts []act) {
	if f.user == nil || !bytes.Equal(user, f.user) {
		f.user, f.far = append(f.user[:0], user...), 0
		for i := range f.begun {
			f.begun[i] = never
		}
	}
	for _, a := range acts {
		f.act(a)
	}
}

func (f *funnel) act(a act) {
	for i := len(f.verbs) - 1; i >= 0; i-- { // backwards, so that an action counts for one step only
		switch {
		case a.verb != f.verbs[i]:
			continue
		case i == 0:
			f.begun[0] = a.at
		case f.begun[i-1] != never && a.at-f.begun[i-1] <= f.within:
			f.begun[i] = max(f.begun[i], f.begun[i-1])
		default:
			continue
		}
		for ; f.far <= i; f.far++ {
			f.steps[f.far].Users++
		}
	}
}

// Popular is the number of actions on pins of an interest.
type Popular struct {
	Interest schemas.InterestID `json:"interest"`
	Actions  uint64             `json:"actions"`
	// Hours is the actions by weekday, Monday first, and hour of UTC.
	Hours [7][24]uint64 `json:"hours"`
}

// mostPopular keeps the n interests with the most actions, ties by name, and up to n others: there may be too many
// interests to hold them all.
type mostPopular struct {
	n   int
	all []Popular
}

func (m *mostPopular) add(p Popular) {
	if m.all = append(m.all, p); len(m.all) == 2*m.n {
		m.trim()
	}
}

// trim sorts the interests and drops those beyond n.
func (m *mostPopular) trim() {
	slices.SortFunc(m.all, func(a, b Popular) int {
		return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(a.Interest, b.Interest))
	})
	m.all = m.all[:min(len(m.all), m.n)]
}
