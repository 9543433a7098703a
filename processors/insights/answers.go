package insights

import "github.com/smartfeed/smartfeed/schemas"

// dormantAfter is the number of days without an action after which a user is dormant.
const dormantAfter = 28

// growth counts the changes of the n days up to and including last, oldest first.
type growth struct {
	days []schemas.GrowthDay
	last day
}

func newGrowth(last day, n int) *growth {
	g := &growth{days: make([]schemas.GrowthDay, n), last: last}
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
			} else if known && d-before >= dormantAfter {
				at.Resurrected++
			}
		case known && d-before < dormantAfter:
			at.Active++
		case known && d-before == dormantAfter:
			at.Dormant++
		}
	}
}

// retention holds the cohorts of n weeks up to and including the week of last, oldest first.
type retention struct {
	cohorts []schemas.Cohort
	first   day // Monday of the oldest
}

func newRetention(last day, n int) *retention {
	r := &retention{cohorts: make([]schemas.Cohort, n), first: last.monday() - day(7*(n-1))}
	for i := range r.cohorts {
		r.cohorts[i] = schemas.Cohort{Week: (r.first + day(7*i)).String(), Active: make([]int, n-i)}
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

// funnel counts users who took the steps in order, the last at most within after the first. One action counts for one
// step, and other actions may lie between.
type funnel struct {
	steps  []schemas.FunnelStep
	verbs  []schemas.Verb
	within schemas.Micros

	begun []schemas.Micros // for each step, the latest start from which the present user reached it
	far   int              // number of steps that the present user reached
}

// never is the start of a step that was not reached.
const never = schemas.Micros(-1 << 62)

func newFunnel(verbs []schemas.Verb, within schemas.Micros) *funnel {
	f := &funnel{
		steps: make([]schemas.FunnelStep, len(verbs)), verbs: verbs, within: within,
		begun: make([]schemas.Micros, len(verbs)),
	}
	for i, v := range verbs {
		f.steps[i].Verb = v
	}
	return f
}

// add adds the entries of a user, in ascending time.
func (f *funnel) add(entries []entry) {
	f.far = 0
	for i := range f.begun {
		f.begun[i] = never
	}
	for _, e := range entries {
		f.act(e)
	}
}

func (f *funnel) act(e entry) {
	for i := len(f.verbs) - 1; i >= 0; i-- { // backwards, so that an action counts for one step only
		switch {
		case e.what != string(f.verbs[i]):
			continue
		case i == 0:
			f.begun[0] = e.at
		case f.begun[i-1] != never && e.at-f.begun[i-1] <= f.within:
			f.begun[i] = max(f.begun[i], f.begun[i-1])
		default:
			continue
		}
		for ; f.far <= i; f.far++ {
			f.steps[f.far].Users++
		}
	}
}
