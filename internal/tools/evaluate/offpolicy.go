package evaluate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// PolicyReport is the estimate of a policy.
type PolicyReport struct {
	Places        int `json:"places"`         // that the estimates use
	NotRandomized int `json:"not_randomized"` // places of other policies
	Unknown       int `json:"unknown"`        // randomized places without choices, propensity, or an output that the policy uses
	// EffectiveSampleSize is that of Kish, (Σ w)² / Σ w², and Overlap its share of the places.
	EffectiveSampleSize float64          `json:"effective_sample_size"`
	Overlap             float64          `json:"overlap"`
	Outside             float64          `json:"outside"`     // probability of the new policy on choices that the logged policy never makes
	MeanWeight          float64          `json:"mean_weight"` // of the places; 1 - Outside if the logged probabilities are right
	Actions             []PolicyEstimate `json:"actions"`
}

// PolicyEstimate has the rates per item of one verb.
type PolicyEstimate struct {
	Verb         string               `json:"verb"`
	Logged       *experiment.Estimate `json:"logged"` // rate of the policies in the log
	IPS          *experiment.Estimate `json:"ips"`
	SNIPS        *experiment.Estimate `json:"snips"`
	DoublyRobust *experiment.Estimate `json:"doubly_robust"`
	Difference   *experiment.Estimate `json:"difference"` // of DoublyRobust to Logged, for the same users
}

// rounding is the largest error of probabilities that add up to 1.
const rounding = 1e-6

// maxOutside is the maximum of PolicyReport.Outside: the estimates ignore this part of the policy.
const maxOutside = 0.01

// estimation estimates a policy, from the sums of each user.
type estimation struct {
	*evaluation
	outputs []string // that the policy uses
	report  PolicyReport
	models  [][folds]*rewardModel // by label: each fitted to the rows without a fold of the users
	known   map[string]bool
	sums    experiment.Users // see the constants
	squares float64          // of weights
}

const folds = 5

// foldOf returns the fold of a user.
func foldOf(user string) int { return int(xxhash.Sum64String(user) % folds) }

// The sums of a user over the places. Those of each action follow.
const (
	items = iota
	weights
	inside // probability of the policy on logged choices
	excess // of weights above inside
	shared // number of these sums
)

// The sums of a user for one action.
const (
	logged = iota
	weighted
	robust
	difference // of robust to logged
	perAction  // number of these sums
)

// policy estimates the rates of the policy. It reads the log twice: to fit the reward models, and to apply them.
func (e *evaluation) policy() (*PolicyReport, error) {
	outputs, err := e.Policy.outputs(e.log.Outputs)
	if err != nil {
		return nil, err
	}
	s := &estimation{evaluation: e, outputs: outputs, known: map[string]bool{}, sums: experiment.Users{}}
	for _, verb := range e.Actions {
		var models [folds]*rewardModel
		for f := range models {
			models[f] = newRewardModel(e.log.Outputs)
		}
		s.models = append(s.models, models)
		s.report.Actions = append(s.report.Actions, PolicyEstimate{Verb: verb})
	}
	if err := e.rows(s.fit); err != nil {
		return nil, err
	}
	if err := s.checkSupport(); err != nil {
		return nil, err
	}
	for _, models := range s.models {
		for _, m := range models {
			m.solve()
		}
	}
	if err := e.rows(s.apply); err != nil {
		return nil, err
	}
	return s.result()
}

// usable reports whether a row is a place with the probabilities of its choices, and with the outputs that the policy uses.
func (s *estimation) usable(r *training.Row) bool {
	for _, c := range r.Choices {
		for _, output := range s.outputs {
			if n, found := c.Outputs[output]; len(c.Outputs) > 0 && (!found || math.IsNaN(n)) {
				return false
			}
		}
	}
	return r.Policy == schemas.PolicyRandomized && len(r.Choices) > 0 && r.Propensity > 0
}

// fit counts a row, and adds it to the reward models.
func (s *estimation) fit(r *training.Row) error {
	switch {
	case r.Policy != schemas.PolicyRandomized:
		s.report.NotRandomized++
		return nil
	case !s.usable(r):
		s.report.Unknown++
		return nil
	}
	if err := checkChoices(r); err != nil {
		return fmt.Errorf("visit %s, position %d: %w", r.Visit, r.Position, err)
	}
	s.report.Places++
	for _, c := range r.Choices {
		s.known[c.Source] = true
	}
	for i, verb := range s.Actions {
		for f, m := range s.models[i] {
			if f != foldOf(r.User) {
				m.add(r, reward(r, verb))
			}
		}
	}
	return nil
}

// reward returns 1 for an action.
func reward(r *training.Row, verb string) float64 {
	if r.Acted[verb] {
		return 1
	}
	return 0
}

// checkChoices checks that the choices of a row contain its item, with its propensity, and that their probabilities add up to 1.
func checkChoices(r *training.Row) error {
	if r.Choice < 0 || int(r.Choice) >= len(r.Choices) || r.Choices[r.Choice].Pin != r.Pin {
		return fmt.Errorf("choice %d of %d is not the pin %s", r.Choice, len(r.Choices), r.Pin)
	}
	if p := r.Choices[r.Choice].Probability; math.Abs(p-r.Propensity) > rounding {
		return fmt.Errorf("the choice has probability %v, and the item has propensity %v", p, r.Propensity)
	}
	sum := 0.0
	for _, c := range r.Choices {
		sum += c.Probability
	}
	if !(math.Abs(sum-1) <= rounding) {
		return fmt.Errorf("the probabilities of the choices add up to %v, want 1", sum)
	}
	return nil
}

// checkSupport returns an error if the log says nothing about the policy.
func (s *estimation) checkSupport() error {
	if s.report.Places == 0 {
		return fmt.Errorf("the log of the feed %s has no randomized places (%d of other policies, %d unknown): set generator.feeds.%s.randomize, and export later visits",
			s.Policy.Feed, s.report.NotRandomized, s.report.Unknown, s.Policy.Feed)
	}
	for _, source := range slices.Sorted(maps.Keys(s.Policy.Shares)) {
		if s.Policy.Shares[source] > 0 && !s.known[source] {
			return fmt.Errorf("policy: shares.%s: the log has no choice of this source, only of %q", source, slices.Sorted(maps.Keys(s.known)))
		}
	}
	return nil
}

// apply adds a row to the sums of its user.
func (s *estimation) apply(r *training.Row) error {
	if !s.usable(r) {
		return nil
	}
	probabilities := s.Policy.probabilities(r.Choices, s.outputs)
	possible := 0.0
	for i, c := range r.Choices {
		if c.Probability > 0 {
			possible += probabilities[i]
		}
	}
	each, w := weight(r), probabilities[r.Choice]/r.Propensity
	s.squares += each * w * each * w
	sums := []float64{each, each * w, each * possible, each * (w - possible)}
	for i, verb := range s.Actions {
		modeled, shown := s.models[i][foldOf(r.User)].predict(r, probabilities)
		y := reward(r, verb)
		estimate := modeled + w*(y-shown)
		sums = append(sums, each*y, each*w*y, each*estimate, each*(estimate-y))
	}
	s.sums.Add(r.User, sums...)
	return nil
}

// result returns the estimates, or an error if they are not sound.
func (s *estimation) result() (*PolicyReport, error) {
	r := &s.report
	for i := range r.Actions {
		a, first := &r.Actions[i], shared+perAction*i
		rate := func(x, y int) *experiment.Estimate { return s.sums.Sums(first+x, y).Ratio() }
		a.Logged, a.IPS, a.SNIPS = rate(logged, items), rate(weighted, items), rate(weighted, weights)
		a.DoublyRobust, a.Difference = rate(robust, items), rate(difference, items)
	}
	all, possible := s.sums.Sums(weights, items), s.sums.Sums(inside, items)
	r.Outside, r.MeanWeight = max(0, 1-possible.X/possible.Y), all.X/all.Y
	if s.squares > 0 {
		r.EffectiveSampleSize = all.X * all.X / s.squares
	}
	r.Overlap = r.EffectiveSampleSize / float64(r.Places)
	if err := s.checkOverlap(s.sums.Sums(excess, items).Ratio()); err != nil {
		return nil, err
	}
	return r, nil
}

// checkOverlap returns an error if the log has too little of what the policy does. excess is the mean weight above its
// expected value.
func (s *estimation) checkOverlap(excess *experiment.Estimate) error {
	const extreme = 4 // standard errors: by chance once in 16,000 estimates
	switch r := &s.report; {
	case r.Outside > maxOutside:
		return fmt.Errorf("the policy makes choices that the logged policy never makes with probability %.3g, want at most %v: log with a policy that can make them", r.Outside, maxOutside)
	case r.Overlap < s.MinOverlap:
		return fmt.Errorf("overlap: the effective sample size is %.0f of %d places, %.3g, want at least --min-overlap %v: use a policy that is closer to the logged one, or log with a higher temperature",
			r.EffectiveSampleSize, r.Places, r.Overlap, s.MinOverlap)
	case excess != nil && math.Abs(excess.Value) > extreme*excess.StdErr+rounding:
		return fmt.Errorf("the mean weight is %.4g, want %.4g ± %.2g: the logged probabilities are not those of the items that were shown",
			r.MeanWeight, 1-r.Outside, extreme*excess.StdErr)
	}
	return nil
}
