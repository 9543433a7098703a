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
	labels, err := cfg.labels(log.Layout)
	if err != nil {
		return nil, err
	}
	e := &evaluation{Config: cfg, log: log, labels: labels}
	if cfg.Policy != nil {
		e.Feed = cfg.Policy.Feed
	}
	report, err := e.arms()
	if err != nil || cfg.Policy == nil {
		return report, err
	}
	report.Policy, err = e.policy()
	return report, err
}

// label is a column of labels.
type label struct {
	verb  string
	index int // in training.Row.Labels
}

// labels returns the columns of the actions, in the order of the configuration.
func (c Config) labels(l training.Layout) (list []label, err error) {
	verbs := l.Verbs()
	actions := c.Actions
	if len(actions) == 0 {
		actions = verbs
	}
	for _, verb := range actions {
		i := slices.Index(verbs, verb)
		if i < 0 {
			return nil, fmt.Errorf("action: %q: the rows have labels of %q", verb, verbs)
		}
		list = append(list, label{verb, i})
	}
	return list, nil
}

type evaluation struct {
	Config
	log    Log
	labels []label
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

// armKey names an arm.
type armKey struct{ feed, arm string }

// armCount counts an arm.
type armCount struct {
	experiment.Tally
	users map[string][]userCount // by label
}

// userCount has the weighted counts of one user for one label.
type userCount struct {
	acted, censored        int
	actions, items, visits float64
}

// arms compares the arms of each feed.
func (e *evaluation) arms() (*Report, error) {
	report, arms := &Report{}, map[armKey]*armCount{}
	err := e.rows(func(r *training.Row) error {
		if report.From.IsZero() || r.Time.Before(report.From) {
			report.From = r.Time
		}
		if r.Time.After(report.To) {
			report.To = r.Time
		}
		key := armKey{r.Feed, r.Arm}
		if arms[key] == nil {
			count := experiment.Count{Arm: r.Arm, Share: r.ArmShare}
			arms[key] = &armCount{experiment.Tally{Feed: r.Feed, Count: count}, map[string][]userCount{}}
		}
		arms[key].add(r, e.labels)
		return nil
	})
	if err == nil && len(arms) == 0 {
		err = fmt.Errorf("feed %q: the log has no visits", e.Feed)
	}
	if err != nil {
		return nil, err
	}
	report.Experiments = experiment.Compare(e.tallies(arms), max(1, report.To.Sub(report.From).Hours()/24), e.Effect)
	return report, nil
}

// tallies returns the counts of all arms.
func (e *evaluation) tallies(arms map[armKey]*armCount) (list []experiment.Tally) {
	for key, a := range arms {
		a.count(e.labels)
		for user := range a.users {
			for other, o := range arms {
				if other.feed == key.feed && other.arm != key.arm && o.users[user] != nil {
					a.Switched++
					break
				}
			}
		}
		list = append(list, a.Tally)
	}
	return list
}

// add counts a row. An arm whose share changed has no share.
func (a *armCount) add(r *training.Row, labels []label) {
	if r.ArmShare != a.Share {
		a.Share = 0
	}
	a.Items++
	visits := 0.0
	if r.Position == 0 {
		a.Visits++
		visits = weight(r)
	}
	counts := a.users[r.User]
	if counts == nil {
		counts = make([]userCount, len(labels))
		a.users[r.User] = counts
	}
	for i, l := range labels {
		c := &counts[i]
		switch acted := r.Labels[l.index].Acted; {
		case acted == nil:
			c.censored++
			continue
		case *acted:
			c.acted++
			c.actions += weight(r)
		}
		c.items += weight(r)
		c.visits += visits
	}
}

// count adds up the users.
func (a *armCount) count(labels []label) {
	a.Users = len(a.users)
	for i, l := range labels {
		action := experiment.ActionTally{ActionCount: experiment.ActionCount{Verb: l.verb}}
		for _, user := range slices.Sorted(maps.Keys(a.users)) { // in an order, so that the rounding is the same in each run
			c := a.users[user][i]
			action.Count += c.acted
			action.Censored += c.censored
			if c.items > 0 {
				action.PerItem.Add(c.actions, c.items)
				action.PerVisit.Add(c.actions, c.visits)
			}
		}
		a.Actions = append(a.Actions, action)
	}
}
