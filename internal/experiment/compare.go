package experiment

import (
	"cmp"
	"slices"
)

// Tally counts the users, visits, items and actions of an arm.
type Tally struct {
	Feed string `json:"feed"`
	Count
	Actions []ActionTally `json:"actions"`
}

// Count is the size of an arm.
type Count struct {
	Arm    string  `json:"arm"`   // "": the users in no other arm
	Share  float64 `json:"share"` // of the users; 0: unknown
	Users  int     `json:"users"` // with visits
	Visits int     `json:"visits"`
	Items  int     `json:"items"`
}

// ActionTally counts the actions of one verb in an arm.
type ActionTally struct {
	Verb     string `json:"verb"`
	Count    int    `json:"count"`
	PerItem  Sums   `json:"per_item"` // actions and items of each user
	PerVisit Sums   `json:"per_visit"`
}

// Merge adds the counts of other users of the arm, with the same verbs.
func (t *Tally) Merge(o Tally) {
	t.Users += o.Users
	t.Visits += o.Visits
	t.Items += o.Items
	for i := range o.Actions {
		a, b := &t.Actions[i], o.Actions[i]
		a.Count += b.Count
		a.PerItem.Merge(b.PerItem)
		a.PerVisit.Merge(b.PerVisit)
	}
}

// Tallies are the counts of all arms for the same verbs.
type Tallies struct {
	Verbs []string
	All   []Tally
}

// Of returns the counts of an arm, which are 0 at first. The result is valid until the next call.
func (ts *Tallies) Of(feed, arm string) *Tally {
	i := slices.IndexFunc(ts.All, func(t Tally) bool { return t.Feed == feed && t.Arm == arm })
	if i < 0 {
		t := Tally{Feed: feed, Count: Count{Arm: arm}}
		for _, verb := range ts.Verbs {
			t.Actions = append(t.Actions, ActionTally{Verb: verb})
		}
		i, ts.All = len(ts.All), append(ts.All, t)
	}
	return &ts.All[i]
}

// Experiment is the comparison of the arms of a feed.
type Experiment struct {
	Feed        string       `json:"feed"`
	SampleRatio *SampleRatio `json:"sample_ratio"` // nil: one arm, no users, or unknown shares
	Arms        []Arm        `json:"arms"`         // in the order of their names; the first is the control
}

// Arm is an experiment arm with its rates.
type Arm struct {
	Count
	Actions []Rate `json:"actions"`
}

// Rate is the rate of the actions of one verb in an arm. An estimate is nil without enough data.
type Rate struct {
	Verb       string    `json:"verb"`
	Count      int       `json:"count"`
	PerItem    *Estimate `json:"per_item"`
	PerVisit   *Estimate `json:"per_visit"`
	Difference *Estimate `json:"difference"`  // of PerItem, to the control
	DaysNeeded *float64  `json:"days_needed"` // length of an experiment that detects the requested effect
}

// Compare compares the arms of each feed with the first of them. All were counted for the same days and have the same verbs.
// effect is the relative effect for Rate.DaysNeeded, for example 0.05.
func Compare(tallies []Tally, days, effect float64) []Experiment {
	slices.SortFunc(tallies, func(a, b Tally) int { return cmp.Or(cmp.Compare(a.Feed, b.Feed), cmp.Compare(a.Arm, b.Arm)) })
	all := []Experiment{}
	for len(tallies) > 0 {
		n := slices.IndexFunc(tallies, func(t Tally) bool { return t.Feed != tallies[0].Feed })
		if n < 0 {
			n = len(tallies)
		}
		all = append(all, compare(tallies[:n], days, effect))
		tallies = tallies[n:]
	}
	return all
}

func compare(arms []Tally, days, effect float64) Experiment {
	e := Experiment{Feed: arms[0].Feed, SampleRatio: newSampleRatio(arms)}
	for i, t := range arms {
		arm := Arm{Count: t.Count}
		for k, a := range t.Actions {
			r := Rate{Verb: a.Verb, Count: a.Count, PerItem: a.PerItem.Ratio(), PerVisit: a.PerVisit.Ratio()}
			if control := arms[0].Actions[k].PerItem.Ratio(); i > 0 && control != nil {
				r.Difference = r.PerItem.Minus(control)
				r.DaysNeeded = daysNeeded(r.Difference, effect*control.Value, days)
			}
			arm.Actions = append(arm.Actions, r)
		}
		e.Arms = append(e.Arms, arm)
	}
	return e
}
