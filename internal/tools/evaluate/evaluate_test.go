package evaluate

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

func logOf(rows ...*training.Row) *training.Log {
	return (&world{rows: rows}).log()
}

// shown returns a row of a user's visit in an arm. acted is one letter: y or n.
func shown(user, arm string, visit, position int, acted string) *training.Row {
	return &training.Row{Item: training.Item{
		Visit: user + arm, User: user, Time: start.Add(time.Duration(visit) * 24 * time.Hour), Feed: "home", Arm: arm, ArmShare: 0.5, UserShare: 1,
		Policy: schemas.PolicyDeterministic, Position: int32(position),
	}, Acted: map[string]bool{"save": acted == "y"}}
}

func config(change func(*Config)) Config {
	c := DefaultConfig()
	change(&c)
	return c
}

// Arms are counted by user, and a sampling rate that changed has the weight of the
// users who were not sampled.
func TestRun_CountsArms(t *testing.T) {
	report := must.Get(Run(logOf(
		shown("user:1", "", 0, 0, "y"), shown("user:1", "", 0, 1, "n"), shown("user:2", "", 4, 0, "n"), shown("user:2", "", 4, 1, "n"),
		shown("user:3", "b", 0, 0, "y"), shown("user:3", "b", 0, 1, "y"), shown("user:4", "b", 1, 0, "y"), shown("user:1", "b", 2, 0, "n"),
	), DefaultConfig()))(t)
	x := report.Experiments[0]
	if report.From != start || !report.To.Equal(start.Add(96*time.Hour)) || x.Feed != "home" || len(x.Arms) != 2 {
		t.Fatalf("got %+v", report)
	}
	for i, want := range []experiment.Arm{
		{Count: experiment.Count{Share: 0.5, Users: 2, Visits: 2, Items: 4}},
		{Count: experiment.Count{Arm: "b", Share: 0.5, Users: 3, Visits: 3, Items: 4}},
	} {
		got := x.Arms[i]
		got.Actions = nil
		expect.NoDiff(t, got, want, "arm %d", i)
	}
	a, b := x.Arms[0].Actions[0], x.Arms[1].Actions[0]
	expect.Equal(t, [2]int{a.Count, b.Count}, [2]int{1, 3}, "actions")
	if a.PerItem.Value != 0.25 || a.PerVisit.Value != 0.5 || b.PerItem.Value != 0.75 || b.PerVisit.Value != 1 {
		t.Errorf("rates: got %v and %v per item, %v and %v per visit", a.PerItem, b.PerItem, a.PerVisit, b.PerVisit)
	}
	half := shown("user:5", "b", 0, 0, "n")
	half.UserShare = 0.5
	report = must.Get(Run(logOf(shown("user:3", "b", 0, 0, "y"), shown("user:4", "b", 0, 0, "y"), half), DefaultConfig()))(t)
	expect.Equal(t, report.Experiments[0].Arms[0].Actions[0].PerItem.Value, 0.5, "with a user who stands for two: rate")
}

// The sample ratio is checked, unless the share of an arm changed.
func TestRun_ChecksSampleRatio(t *testing.T) {
	var rows []*training.Row
	for i := range 100 {
		rows = append(rows, shown("user:"+strings.Repeat("x", i), "", 0, 0, "n"))
		if i%2 == 0 {
			rows = append(rows, shown("user:b"+strings.Repeat("x", i), "b", 0, 0, "n"))
		}
	}
	for _, changed := range []bool{false, true} {
		if changed {
			rows[7].ArmShare = 0.4
		}
		report := must.Get(Run(logOf(rows...), DefaultConfig()))(t)
		if r := report.Experiments[0].SampleRatio; (r == nil) != changed || r != nil && !r.Mismatch {
			t.Errorf("share changed %v: got %+v, want a mismatch unless it changed", changed, r)
		}
	}
}

// An experiment of another feed is another experiment. A policy has one feed.
func TestRun_SelectsFeedAndActions(t *testing.T) {
	other := shown("user:9", "", 0, 0, "y")
	other.Feed = "also"
	log := logOf(shown("user:1", "", 0, 0, "y"), other)
	for feed, want := range map[string]string{"": "also home", "home": "home", "also": "also"} {
		cfg := DefaultConfig()
		if feed != "" {
			cfg.Policy = &Policy{Feed: feed}
		}
		report, _ := Run(log, cfg) // the log has no randomized places
		var feeds []string
		for _, x := range report.Experiments {
			feeds = append(feeds, x.Feed)
		}
		expect.Equal(t, strings.Join(feeds, " "), want, "feed %q", feed)
	}
	_, err := Run(log, config(func(c *Config) { c.Policy = &Policy{Feed: "none"} }))
	expect.Error(t, err, "no visits", "a feed without visits")
	expect.Error(t, expect.ErrorOf(Run(log, config(func(c *Config) { c.Actions = []string{"nod"} }))), `labels of ["save"]`, "unlabeled")
	failed := errors.New("disk")
	log.Each = func(func(*training.Row) error) error { return failed }
	expect.Is(t, expect.ErrorOf(Run(log, DefaultConfig())), failed, "a log that cannot be read")
}

// A policy is refused if the log cannot answer for it, or contradicts itself. The arms are compared nevertheless.
func TestRun_RefusesPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		log    func(rows []*training.Row)
		policy func(*Policy)
		want   string
	}{
		"deterministic log": {func(rows []*training.Row) {
			for _, r := range rows {
				r.Policy, r.Choices = schemas.PolicyDeterministic, nil
			}
		}, nil, "no randomized places"},
		"too little overlap":  {nil, func(p *Policy) { p.Temperature = 0.01 }, "the effective sample size is"},
		"source never logged": {nil, func(p *Policy) { p.Shares["popular"] = 0.1 }, "shares.popular: the log has no choice of this source"},
		"unknown output":      {nil, func(p *Policy) { p.Utility["like"] = 1 }, `utility.like: the log has the outputs ["noise" "save"]`},
		"choices of probability 0": {func(rows []*training.Row) {
			for _, r := range rows {
				for i := range r.Choices[:len(r.Choices)-1] {
					if c := &r.Choices[i]; i != int(r.Choice) && c.Source == "related" {
						r.Choices[len(r.Choices)-1].Probability += c.Probability
						c.Probability = 0
					}
				}
				r.Propensity = r.Choices[r.Choice].Probability
			}
		}, nil, "never makes"},
		"places without a source of the policy": {nil, func(p *Policy) { p.Shares = map[string]float64{"following": 1} }, "never makes"},
		"items that the probabilities do not explain": {func(rows []*training.Row) {
			for _, r := range rows {
				for i, c := range r.Choices {
					if c.Score > r.Choices[r.Choice].Score {
						r.Choice, r.Pin, r.Propensity = int32(i), c.Pin, c.Probability
					}
				}
			}
		}, nil, "the mean weight is"},
		"propensity of another choice": {func(rows []*training.Row) { rows[5].Propensity = 0.9999 }, nil, "the item has propensity 0.9999"},
		"probabilities above 1": {func(rows []*training.Row) {
			r := rows[5]
			r.Choices = append(r.Choices, training.Choice{Source: "related", Probability: 0.5})
		}, nil, "add up to 1.5"},
		"choice out of range": {func(rows []*training.Row) { rows[5].Choice = 9 }, nil, "choice 9 of"},
		"other item":          {func(rows []*training.Row) { rows[5].Pin = "pin:other" }, nil, "is not the pin pin:other"},
	} {
		t.Run(name, func(t *testing.T) {
			w, policy := simulate(7, 300, 1), *newPolicy
			policy.Shares, policy.Utility = map[string]float64{"following": 0.3, "related": 0.6, "interest": 0.1}, map[string]float64{"save": 2}
			if c.log != nil {
				c.log(w.rows)
			}
			if c.policy != nil {
				c.policy(&policy)
			}
			report, err := Run(w.log(), config(func(c *Config) { c.Policy, c.MinOverlap = &policy, 0.4 }))
			expect.Error(t, err, c.want, "Run")
			if report == nil || len(report.Experiments) != 1 || report.Policy != nil {
				t.Errorf("got the report %+v, want only the arms", report)
			}
		})
	}
}

// The policy that made the log has the rates of the log, all of its places, and the weight 1 everywhere. Places without
// probabilities are counted, and left out.
func TestRun_LoggedPolicyHasLoggedRates(t *testing.T) {
	w := simulate(7, 300, 1)
	n := len(w.rows)
	w.rows[0].Propensity, w.rows[1].Policy = 0, schemas.PolicyDeterministic
	w.rows[3].Choices[0].Outputs["noise"], w.rows[4].Choices[0].Outputs = math.NaN(), nil
	for name, policy := range map[string]*Policy{
		"as logged":       {Feed: "home"},
		"the same shares": {Feed: "home", Shares: loggedShares},
		"the same rules":  {Feed: "home", Shares: loggedShares, Score: 2, Temperature: 2},
	} {
		report := must.Get(Run(w.log(), config(func(c *Config) { c.Policy = policy })))(t)
		p := report.Policy
		expect.Equal(t, [3]int{p.Places, p.NotRandomized, p.Unknown}, [3]int{n - 2, 1, 1}, "%s: places, not randomized ones, unknown ones", name)
		if math.Abs(p.Overlap-1) > 1e-9 || math.Abs(p.MeanWeight-1) > 1e-9 || p.Outside > 1e-9 {
			t.Errorf("%s: got %+v, want full overlap", name, p)
		}
		a := p.Actions[0]
		for _, e := range []*experiment.Estimate{a.IPS, a.SNIPS} {
			expect.Near(t, e.Value, a.Logged.Value, 1e-9, "%s: rate", name)
			expect.Near(t, e.StdErr, a.Logged.StdErr, 1e-9, "%s: standard error", name)
		}
	}
}

// A place lacks the rates of a policy that uses an output which is no number there. Other policies estimate it.
func TestRun_LeavesOutMissingOutputs(t *testing.T) {
	for output, want := range map[string]int{"save": 2, "noise": 0} {
		w := simulate(7, 300, 1)
		w.rows[5].Choices[0].Outputs["save"] = math.NaN()
		delete(w.rows[6].Choices[0].Outputs, "save")
		policy := &Policy{Feed: "home", Utility: map[string]float64{output: 1}, Temperature: 2}
		report := must.Get(Run(w.log(), config(func(c *Config) { c.Policy = policy })))(t)
		if p := report.Policy; p.Unknown != want || !(p.Actions[0].DoublyRobust.Value > 0 && p.Actions[0].IPS.Value > 0) {
			t.Errorf("utility of %s: got %+v, want %d unknown places, and rates", output, p, want)
		}
	}
}

func TestReadPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	must.OK(t, os.WriteFile(path, []byte("feed: home\nshares: {following: 1}\nutility: {save: 3, hide: -5}\nscore: 0.5\ntemperature: 2\n"), 0o600))
	got := must.Get(ReadPolicy(path))(t)
	want := &Policy{
		Feed: "home", Shares: map[string]float64{"following": 1}, Utility: map[string]float64{"save": 3, "hide": -5}, Score: 0.5, Temperature: 2,
	}
	expect.NoDiff(t, got, want, "result")
	must.OK(t, config(func(c *Config) { c.Policy = got }).Validate())
	must.OK(t, os.WriteFile(path, []byte("feed: home\nweights: {save: 1}\n"), 0o600))
	expect.Error(t, expect.ErrorOf(ReadPolicy(path)), "weights", "unknown key")
}

func TestConfig_Validate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"min-overlap: 0":            func(c *Config) { c.MinOverlap = 0 },
		"min-overlap: NaN":          func(c *Config) { c.MinOverlap = math.NaN() },
		"effect: 1.5":               func(c *Config) { c.Effect = 1.5 },
		"policy.feed":               func(c *Config) { c.Policy = &Policy{} },
		"policy.shares.related: -1": func(c *Config) { c.Policy = &Policy{Feed: "home", Shares: map[string]float64{"related": -1}} },
		"all are 0":                 func(c *Config) { c.Policy = &Policy{Feed: "home", Shares: map[string]float64{"related": 0}} },
		"utility.save: NaN":         func(c *Config) { c.Policy = &Policy{Feed: "home", Utility: map[string]float64{"save": math.NaN()}} },
		"temperature: want":         func(c *Config) { c.Policy = &Policy{Feed: "home", Score: 1} },
		"and no temperature":        func(c *Config) { c.Policy = &Policy{Feed: "home", Temperature: 1} },
		"score: +Inf":               func(c *Config) { c.Policy = &Policy{Feed: "home", Score: math.Inf(1), Temperature: 1} },
		"temperature: -1: want 0":   func(c *Config) { c.Policy = &Policy{Feed: "home", Score: 1, Temperature: -1} },
	} {
		expect.Error(t, config(change).Validate(), want, "Validate")
	}
	must.OK(t, DefaultConfig().Validate())
}
