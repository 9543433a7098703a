package experiment

// Tally counts an arm.
type Tally struct {
	Feed    string        `json:"feed"`
	Arm     string        `json:"arm"`   // "": the users in no other arm
	Share   float64       `json:"share"` // of the users; 0: unknown
	Users   int           `json:"users"` // with items
	Visits  int           `json:"visits"`
	Items   int           `json:"items"`
	Actions []ActionTally `json:"actions"`
}

// ActionTally counts the actions of one verb in an arm.
type ActionTally struct {
	Verb     string `json:"verb"`
	Count    int    `json:"count"`
	Censored int    `json:"censored"` // items whose window had not ended
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
		a.Censored += b.Censored
		a.PerItem.Merge(b.PerItem)
		a.PerVisit.Merge(b.PerVisit)
	}
}

// Experiment is the comparison of the arms of a feed.
type Experiment struct {
	Feed        string       `json:"feed"`
	SampleRatio *SampleRatio `json:"sample_ratio"` // nil: one arm, or unknown shares
	// Switched is the number of users with visits in several arms, because the shares changed. They count in each.
	Switched int   `json:"switched"`
	Arms     []Arm `json:"arms"` // the first is the control
}

// Arm is an experiment arm with its rates.
type Arm struct {
	Arm     string  `json:"arm"` // "": the users in no other arm
	Share   float64 `json:"share"`
	Users   int     `json:"users"`
	Visits  int     `json:"visits"`
	Items   int     `json:"items"`
	Actions []Rate  `json:"actions"`
}

// Rate is the rate of the actions of one verb in an arm. An estimate is nil without enough data.
type Rate struct {
	Verb       string    `json:"verb"`
	Count      int       `json:"count"`
	Censored   int       `json:"censored"`
	PerItem    *Estimate `json:"per_item"`
	PerVisit   *Estimate `json:"per_visit"`
	Difference *Estimate `json:"difference"` // of PerItem, to the control
	// DaysNeeded is the length of an experiment that detects the requested effect.
	DaysNeeded *float64 `json:"days_needed"`
}

// Compare compares the arms of a feed with the first of them, which were counted for a number of days. effect is the relative
// effect for Rate.DaysNeeded, for example 0.05.
func Compare(arms []Tally, days, effect float64) Experiment {
	e := Experiment{Feed: arms[0].Feed}
	users, shares := make([]int, len(arms)), make([]float64, len(arms))
	for i, t := range arms {
		users[i], shares[i] = t.Users, t.Share
		arm := Arm{Arm: t.Arm, Share: t.Share, Users: t.Users, Visits: t.Visits, Items: t.Items}
		for k, a := range t.Actions {
			r := Rate{Verb: a.Verb, Count: a.Count, Censored: a.Censored, PerItem: a.PerItem.Ratio(), PerVisit: a.PerVisit.Ratio()}
			if control := arms[0].Actions[k].PerItem.Ratio(); i > 0 && control != nil {
				r.Difference = r.PerItem.Minus(control)
				r.DaysNeeded = daysNeeded(r.Difference, effect*control.Value, days)
			}
			arm.Actions = append(arm.Actions, r)
		}
		e.Arms = append(e.Arms, arm)
	}
	e.SampleRatio = newSampleRatio(users, shares)
	return e
}
