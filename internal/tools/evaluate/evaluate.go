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
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/training"
)

// Config selects what is evaluated. See DefaultConfig.
type Config struct {
	Feed       string   // "": all feeds, or that of Policy
	Actions    []string // verbs; none: all labels
	Policy     *Policy  // nil: only the arms
	MinOverlap float64  `yaml:"min-overlap" default:"0.1" range:"0.001..1"` // minimum effective sample size of a policy, as a share of the places
	Effect     float64  `yaml:"effect" default:"0.05" range:"0.001..1"`     // relative effect that experiments are to detect
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	errs := []error{settings.Validate(c)}
	if c.Policy != nil {
		errs = append(errs, settings.Under("policy", c.Policy.validate()))
		if c.Feed != "" && c.Feed != c.Policy.Feed {
			errs = append(errs, fmt.Errorf("feed: %q: the policy is of the feed %q", c.Feed, c.Policy.Feed))
		}
	}
	return errors.Join(errs...)
}

// Report is the evaluation of a log.
type Report struct {
	From        time.Time               `json:"from"` // first visit
	To          time.Time               `json:"to"`   // last visit
	Experiments []experiment.Experiment `json:"experiments"`
	Policy      *PolicyReport           `json:"policy,omitempty"`
}

// Log is a log of served items. training.Dir reads one from files.
type Log struct {
	training.Layout
	Rows func() iter.Seq2[*training.Row, error] // all rows, each time it is called
}

// Run evaluates a log. If only the policy cannot be estimated, it returns a report of the arms with the error.
func Run(log Log, cfg Config) (*Report, error) {
	if cfg.Policy != nil {
		cfg.Feed = cfg.Policy.Feed
	}
	e := &evaluation{Config: cfg, log: log}
	if err := e.findLabels(); err != nil {
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
	log    Log
	labels []int // by action: the index in training.Row.Labels
}

// findLabels finds the labels of the actions. Without actions, it selects all verbs.
func (e *evaluation) findLabels() error {
	verbs := e.log.Verbs()
	if len(e.Actions) == 0 {
		e.Actions = verbs
	}
	for _, verb := range e.Actions {
		i := slices.Index(verbs, verb)
		if i < 0 {
			return fmt.Errorf("action: %q: the rows have labels of %q", verb, verbs)
		}
		e.labels = append(e.labels, i)
	}
	return nil
}

// rows visits the rows of the feed. The error is that of the log or of visit.
func (e *evaluation) rows(visit func(*training.Row) error) error {
	for r, err := range e.log.Rows() {
		if err == nil && (e.Feed == "" || r.Feed == e.Feed) {
			err = visit(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// weight returns how many users a row stands for.
func weight(r *training.Row) float64 { return 1 / cmp.Or(r.UserShare, 1) }

// exposure is a user in an arm.
type exposure struct{ feed, arm, user string }

// labelCount has the weighted counts of an exposure for one label.
type labelCount struct {
	acted, censored        int
	actions, items, visits float64
}

// arms compares the arms of each feed.
func (e *evaluation) arms() (*Report, error) {
	report, arms, users := &Report{}, experiment.Tallies{Verbs: e.Actions}, map[exposure][]labelCount{}
	err := e.rows(func(r *training.Row) error {
		if report.From.IsZero() || r.Time.Before(report.From) {
			report.From = r.Time
		}
		if r.Time.After(report.To) {
			report.To = r.Time
		}
		addItem(arms.Of(r.Feed, r.Arm), r)
		x := exposure{r.Feed, r.Arm, r.User}
		if users[x] == nil {
			users[x] = make([]labelCount, len(e.labels))
		}
		for i, label := range e.labels {
			users[x][i].add(r, r.Labels[label].Acted)
		}
		return nil
	})
	if err == nil && len(users) == 0 {
		err = fmt.Errorf("feed %q: the log has no visits", e.Feed)
	}
	if err != nil {
		return nil, err
	}
	addUsers(&arms, users)
	report.Experiments = experiment.Compare(arms.All, max(1, report.To.Sub(report.From).Hours()/24), e.Effect)
	return report, nil
}

// addItem counts a row in its arm. An arm whose share changed has no share.
func addItem(arm *experiment.Tally, r *training.Row) {
	switch {
	case arm.Items == 0:
		arm.Share = r.ArmShare
	case arm.Share != r.ArmShare:
		arm.Share = 0
	}
	arm.Items++
	if r.Position == 0 {
		arm.Visits++
	}
}

func (c *labelCount) add(r *training.Row, acted *bool) {
	if acted == nil {
		c.censored++
		return
	}
	if *acted {
		c.acted++
		c.actions += weight(r)
	}
	c.items += weight(r)
	if r.Position == 0 {
		c.visits += weight(r)
	}
}

// addUsers adds the users to their arms, in an order, so that the rounding is the same in each run.
func addUsers(arms *experiment.Tallies, users map[exposure][]labelCount) {
	for _, x := range slices.SortedFunc(maps.Keys(users), func(a, b exposure) int { return cmp.Compare(a.user, b.user) }) {
		arm := arms.Of(x.feed, x.arm)
		arm.Users++
		if slices.ContainsFunc(arms.All, func(o experiment.Tally) bool {
			return o.Feed == x.feed && o.Arm != x.arm && users[exposure{o.Feed, o.Arm, x.user}] != nil
		}) {
			arm.Switched++
		}
		for i, c := range users[x] {
			action := &arm.Actions[i]
			action.Count += c.acted
			action.Censored += c.censored
			if c.items > 0 {
				action.PerItem.Add(c.actions, c.items)
				action.PerVisit.Add(c.actions, c.visits)
			}
		}
	}
}
