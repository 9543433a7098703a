// Package evaluate compares experiment arms, and estimates the rates of a new policy, from exported training rows.
//
// # Arms
//
// A rate is the number of items with an action of a verb, per item or per visit. Users are sampled and assigned to arms, so
// variances are those of sums per user; see internal/experiment. Rows count with the weight 1/user_share, which matters only if
// the sampling rate changed: equal weights cancel in a ratio.
//
// # Policies
//
// A place is a context: what the log says about the place, given the places before it. The new policy chooses among the
// choices that the log has for the place, and the log has the probability of each. The estimates therefore are those of
// changing every place alone: they do not include how the earlier choices of the new policy would change the later places.
//
// Each estimate is a ratio of sums per user, with w = new probability / logged probability of the shown item:
//
//	ips           Σ w·r / items, the reward r being 1 for an action
//	snips         Σ w·r / Σ w (Swaminathan and Joachims, NIPS 2015)
//	doubly_robust Σ (Σ_choices new·m + w·(r - m(shown))) / items (Dudík, Langford, Li, ICML 2011). m is a ridge regression of the
//	              reward, for each user fitted to the other users' rows (five folds)
package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/training"
)

// Config selects what is evaluated. See DefaultConfig.
type Config struct {
	Actions    []string // verbs; none: all labels
	Policy     *Policy  // nil: only the arms, of all feeds
	MinOverlap float64  `yaml:"min-overlap" default:"0.1" range:"0.001..1"` // minimum effective sample size of a policy, as a share of the places
	Effect     float64  `yaml:"effect" default:"0.05" range:"0.001..1"`     // relative effect that experiments are to detect
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	err := settings.Validate(c)
	if c.Policy != nil {
		err = errors.Join(err, settings.Under("policy", c.Policy.validate()))
	}
	return err
}

// Report is the evaluation of a log.
type Report struct {
	From        time.Time               `json:"from"` // first visit
	To          time.Time               `json:"to"`   // last visit
	Experiments []experiment.Experiment `json:"experiments"`
	Policy      *PolicyReport           `json:"policy,omitempty"`
}

// Run evaluates a log. If only the policy cannot be estimated, it returns a report of the arms with the error.
func Run(log *training.Log, cfg Config) (*Report, error) {
	e := &evaluation{Config: cfg, log: log}
	if err := e.checkActions(); err != nil {
		return nil, err
	}
	report, err := e.arms()
	if err != nil || cfg.Policy == nil {
		return report, err
	}
	report.Policy, err = e.policy()
	return report, err
}

type evaluation struct {
	Config
	log *training.Log
}

// checkActions returns an error for an action without a label. Without actions, it selects all labels.
func (e *evaluation) checkActions() error {
	verbs := e.log.Verbs()
	if len(e.Actions) == 0 {
		e.Actions = verbs
	}
	for _, verb := range e.Actions {
		if !slices.Contains(verbs, verb) {
			return fmt.Errorf("action: %q: the rows have labels of %q", verb, verbs)
		}
	}
	return nil
}

// rows visits the rows of the policy's feed, or without a policy all rows.
func (e *evaluation) rows(visit func(*training.Row) error) error {
	return e.log.Each(func(r *training.Row) error {
		if e.Policy != nil && r.Feed != e.Policy.Feed {
			return nil
		}
		return visit(r)
	})
}

// weight returns how many users a row stands for.
func weight(r *training.Row) float64 { return 1 / cmp.Or(r.UserShare, 1) }

// arms compares the arms of each feed.
func (e *evaluation) arms() (*Report, error) {
	c, report := counts{Tallies: experiment.Tallies{Verbs: e.Actions}, users: map[arm]experiment.Users{}}, &Report{}
	err := e.rows(func(r *training.Row) error {
		if report.From.IsZero() || r.Time.Before(report.From) {
			report.From = r.Time
		}
		if r.Time.After(report.To) {
			report.To = r.Time
		}
		c.add(r)
		return nil
	})
	if err == nil && len(c.All) == 0 {
		err = errors.New("the log has no visits, or none of the feed of the policy")
	}
	if err != nil {
		return nil, err
	}
	for i := range c.All {
		c.addUsers(&c.All[i])
	}
	report.Experiments = experiment.Compare(c.All, max(1, report.To.Sub(report.From).Hours()/24), e.Effect)
	return report, nil
}

// counts counts the rows of each arm.
type counts struct {
	experiment.Tallies
	users map[arm]experiment.Users // the weighted items and visits, and the actions of each verb
}

// arm is an experiment arm of a feed.
type arm struct{ feed, name string }

// add counts a row in its arm. An arm whose share changed has no share.
func (c *counts) add(r *training.Row) {
	tally, visits := c.Of(r.Feed, r.Arm), 0
	switch {
	case tally.Items == 0:
		tally.Share, c.users[arm{r.Feed, r.Arm}] = r.ArmShare, experiment.Users{}
	case tally.Share != r.ArmShare:
		tally.Share = 0
	}
	if r.Position == 0 {
		visits = 1
	}
	tally.Items++
	tally.Visits += visits
	numbers := []float64{weight(r), weight(r) * float64(visits)}
	for i := range tally.Actions {
		action := &tally.Actions[i]
		if r.Acted[action.Verb] {
			action.Count++
		}
		numbers = append(numbers, weight(r)*reward(r, action.Verb))
	}
	c.users[arm{r.Feed, r.Arm}].Add(r.User, numbers...)
}

// addUsers adds the users to their arm.
func (c *counts) addUsers(tally *experiment.Tally) {
	users := c.users[arm{tally.Feed, tally.Arm}]
	tally.Users = len(users)
	for i := range tally.Actions {
		a := &tally.Actions[i]
		a.PerItem, a.PerVisit = users.Sums(2+i, 0), users.Sums(2+i, 1)
	}
}
