package schemas

import "github.com/smartfeed/smartfeed/internal/experiment"

// GrowthDay counts the changes of users' states on one day. A user is new on the day of the first action, active while
// less than 28 days have passed since an action, and otherwise dormant.
type GrowthDay struct {
	Day         string `json:"day"`
	New         int    `json:"new"`         // acted for the first time
	Daily       int    `json:"daily"`       // acted, including the new ones
	Active      int    `json:"active"`      // acted on this day or one of the 27 before it
	Resurrected int    `json:"resurrected"` // acted after having been dormant
	Dormant     int    `json:"dormant"`     // became dormant: their last action is 28 days old
}

// Add adds the users of other partitions.
func (d *GrowthDay) Add(o GrowthDay) {
	d.New += o.New
	d.Daily += o.Daily
	d.Active += o.Active
	d.Resurrected += o.Resurrected
	d.Dormant += o.Dormant
}

// Xd28 is the number of users who acted on a given number of the last 28 days. High numbers of days show a habit.
type Xd28 struct {
	Days  int `json:"days"` // 1 to 28
	Users int `json:"users"`
}

// Add adds the users of other partitions.
func (x *Xd28) Add(o Xd28) { x.Users += o.Users }

// Cohort is the users whose first action was in one week.
type Cohort struct {
	Week  string `json:"week"`  // its Monday
	Users int    `json:"users"` // in it
	// Active is the number of them who acted in that week and in each later week, up to the present one.
	Active []int `json:"active"`
}

// Add adds the users of other partitions, in a cohort of the same week.
func (c *Cohort) Add(o Cohort) {
	c.Users += o.Users
	for i, n := range o.Active {
		c.Active[i] += n
	}
}

// FunnelStep is the number of users who reached a step.
type FunnelStep struct {
	Verb  Verb `json:"verb"`
	Users int  `json:"users"`
}

// Add adds the users of other partitions.
func (s *FunnelStep) Add(o FunnelStep) { s.Users += o.Users }

// Popular is the number of actions on pins of an interest.
type Popular struct {
	Interest InterestID `json:"interest"`
	Actions  uint64     `json:"actions"`
	// Hours is the actions by weekday, Monday first, and hour of UTC.
	Hours [7][24]uint64 `json:"hours"`
}

// Add adds the actions of other partitions.
func (p *Popular) Add(o Popular) {
	p.Actions += o.Actions
	for d := range p.Hours {
		for h := range p.Hours[d] {
			p.Hours[d][h] += o.Hours[d][h]
		}
	}
}

// InterestTotal is the number of actions on pins of an interest, without their hours.
type InterestTotal struct {
	Interest InterestID `json:"interest"`
	Actions  uint64     `json:"actions"`
}

// InsightRequest requests the part of an insight that the users of one partition have. Exactly one of the last seven fields
// is set.
type InsightRequest struct {
	Partition int32 `json:"partition"`
	Today     int32 `json:"today"` // UTC day since 1970-01-01

	Growth    int            `json:"growth,omitempty"`    // number of days up to today
	Xd28s     bool           `json:"xd28s,omitempty"`     //
	Retention int            `json:"retention,omitempty"` // number of weeks up to the present one
	Funnel    *FunnelRequest `json:"funnel,omitempty"`
	Totals    *TotalsRequest `json:"totals,omitempty"`
	Hours     []InterestID   `json:"hours,omitempty"` // interests

	Experiments *ExperimentsRequest `json:"experiments,omitempty"`
}

// ExperimentsRequest requests the visits and actions of the arms of all feeds, in the last days up to today.
type ExperimentsRequest struct {
	Verbs []Verb `json:"verbs"`
	Days  int    `json:"days"`
}

// FunnelRequest requests how many users took the steps in order within a time, in the last days up to today.
type FunnelRequest struct {
	Steps  []Verb `json:"steps"`
	Within Micros `json:"within"`
	Days   int    `json:"days"`
}

// TotalsRequest requests a page of the interests, in the order of their ids.
type TotalsRequest struct {
	From  InterestID `json:"from"` // the first id
	Limit int        `json:"limit"`
}

// InsightPart is the answer to an InsightRequest. The field of the requested insight is set. Parts of the same request have
// the same days, weeks and steps.
type InsightPart struct {
	Growth  []GrowthDay     `json:"growth,omitempty"`
	Xd28s   []Xd28          `json:"xd28s,omitempty"`
	Cohorts []Cohort        `json:"cohorts,omitempty"`
	Steps   []FunnelStep    `json:"steps,omitempty"`
	Totals  []InterestTotal `json:"totals,omitempty"`
	Hours   []Popular       `json:"hours,omitempty"`

	// Experiments has the arms with visits, in no order, with the requested verbs, in their order. It is nil in other answers.
	Experiments []experiment.Tally `json:"experiments"`
}
