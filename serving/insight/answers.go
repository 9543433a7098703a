package insight

import (
	"bytes"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// DormantAfter is how many days without an action make a user dormant.
const DormantAfter = 28

// GrowthDay is how users changed their state on one day. A user is new on the first day of all, active while less than
// DormantAfter days have passed since an action, else dormant.
type GrowthDay struct {
	Day         string `json:"day"`
	New         int    `json:"new"`         // acted for the first time
	Daily       int    `json:"daily"`       // acted, the new ones among them
	Active      int    `json:"active"`      // acted on this day or one of the 27 before it
	Resurrected int    `json:"resurrected"` // acted after having been dormant
	Dormant     int    `json:"dormant"`     // became dormant: their last action is 28 days old
}

// growth counts the changes of n days up to and with last, oldest first.
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

// Xd28 is how many users acted on a number of the last 28 days: the higher, the more of a habit the product is.
type Xd28 struct {
	Days  int `json:"days"` // 1 to 28
	Users int `json:"users"`
}

// Cohort is the users whose first action was in one week.
type Cohort struct {
	Week  string `json:"week"`  // its Monday
	Users int    `json:"users"` // in it
	// Active is how many of them acted in that week and in each one after it, up to the present week.
	Active []int `json:"active"`
}

// retention is the cohorts of n weeks up to and with the one of last, oldest first.
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

// FunnelStep is how many users got so far.
type FunnelStep struct {
	Verb  schemas.Verb `json:"verb"`
	Users int          `json:"users"`
}

// funnel counts users who did the steps one after the other, the last of them no longer than within after the first.
// One action counts for one step, and other actions may lie between.
type funnel struct {
	steps  []FunnelStep
	verbs  []schemas.Verb
	within schemas.Micros

	user  []byte           // who is looked at, with how far that one got
	begun []schemas.Micros // the latest beginning from which each step was reached
	far   int              // how many steps have been
}

// never is when a step was begun that was not.
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

// add takes what a user did, which ascends by time: all of one user's before another's.
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
	for i := len(f.verbs) - 1; i >= 0; i-- { // backwards: it is one step's
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

// Popular is how often pins of an interest were acted on.
type Popular struct {
	Interest schemas.InterestID `json:"interest"`
	Actions  uint64             `json:"actions"`
	// Hours is the actions by weekday, Monday first, and hour of UTC.
	Hours [7][24]uint64 `json:"hours"`
}

// mostPopular keeps the n with the most actions, in their order, ties by name: the others are too many to hold.
type mostPopular struct {
	n   int
	all []*Popular
}

// add takes the interests in the order of their names.
func (m *mostPopular) add(interest []byte, p Popular) {
	i, _ := slices.BinarySearchFunc(m.all, p.Actions, func(kept *Popular, actions uint64) int {
		if kept.Actions >= actions { // which was earlier, and so has the lesser name
			return -1
		}
		return 1
	})
	if i == m.n {
		return
	}
	var place *Popular
	if len(m.all) < m.n {
		place = new(Popular)
	} else { // of the last, which goes
		place, m.all = m.all[m.n-1], m.all[:m.n-1]
	}
	*place = p
	place.Interest = schemas.InterestID(interest)
	m.all = slices.Insert(m.all, i, place)
}

func (m *mostPopular) list() []Popular {
	list := make([]Popular, len(m.all))
	for i, p := range m.all {
		list[i] = *p
	}
	return list
}
