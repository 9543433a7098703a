package evaluate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/training"
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
	Items        int                  `json:"items"`
	Censored     int                  `json:"censored"`
	Logged       *experiment.Estimate `json:"logged"` // rate of the policies in the log
	IPS          *experiment.Estimate `json:"ips"`
	SNIPS        *experiment.Estimate `json:"snips"`
	DoublyRobust *experiment.Estimate `json:"doubly_robust"`
	Difference   *experiment.Estimate `json:"difference"` // of DoublyRobust to Logged, for the same users
}

// maxOutside is the maximum of PolicyReport.Outside: the estimates ignore this part of the policy.
const maxOutside = 0.01

// estimation estimates a policy, from the sums of each user.
type estimation struct {
	*evaluation
	weights []float64 // of the outputs
	report  PolicyReport
	models  []*rewardModel // by label
	known   map[string]bool
	users   map[string]*userSums
	squares float64 // sum of squared weights
}

// userSums has the sums of a user over places.
type userSums struct {
	weights, inside, places float64
	labels                  []rewardSums
}

// rewardSums has the sums of a user over the places with a label.
type rewardSums struct{ items, reward, weighted, weights, robust float64 }

// policy estimates the rates of the policy. It reads the log twice: to fit the reward models, and to apply them.
func (e *evaluation) policy() (*PolicyReport, error) {
	weights, err := e.Policy.weights(e.log.Outputs)
	if err != nil {
		return nil, err
	}
	s := &estimation{evaluation: e, weights: weights, known: map[string]bool{}, users: map[string]*userSums{}}
	for _, verb := range e.Actions {
		s.models = append(s.models, newRewardModel(len(e.log.Outputs)))
		s.report.Actions = append(s.report.Actions, PolicyEstimate{Verb: verb})
	}
	if err := e.rows(s.fit); err != nil {
		return nil, err
	}
	if err := s.checkSupport(); err != nil {
		return nil, err
	}
	for _, m := range s.models {
		m.solve()
	}
	if err := e.rows(s.apply); err != nil {
		return nil, err
	}
	return s.result()
}

// usable reports whether a row is a place with the probabilities of its choices, and with the outputs that the policy uses.
func (s *estimation) usable(r *training.Row) bool {
	for _, c := range r.Choices {
		for i, output := range c.Outputs {
			if math.IsNaN(output) && i < len(s.weights) && s.weights[i] != 0 {
				return false
			}
		}
	}
	return r.Policy == training.Randomized && len(r.Choices) > 0 && r.Propensity != nil && *r.Propensity > 0
}

// fit counts a row, and adds it to the reward models.
func (s *estimation) fit(r *training.Row) error {
	switch {
	case r.Policy != training.Randomized:
		s.report.NotRandomized++
		return nil
	case !s.usable(r):
		s.report.Unknown++
		return nil
	}
	if err := s.checkChoices(r); err != nil {
		return fmt.Errorf("visit %s, position %d: %w", r.Visit, r.Position, err)
	}
	s.report.Places++
	for _, c := range r.Choices {
		s.known[c.Source] = true
	}
	for i, label := range s.labels {
		if acted := r.Labels[label].Acted; acted != nil {
			s.models[i].add(r, reward(*acted))
		}
	}
	return nil
}

// reward returns 1 for an action.
func reward(acted bool) float64 {
	if acted {
		return 1
	}
	return 0
}

// checkChoices checks that the choices of a row contain its item, with its propensity, that their probabilities add up to 1, and
// that each has all outputs or none.
func (s *estimation) checkChoices(r *training.Row) error {
	const rounding = 1e-6
	if r.Choice < 0 || int(r.Choice) >= len(r.Choices) || r.Choices[r.Choice].Pin != r.Pin {
		return fmt.Errorf("choice %d of %d is not the pin %s", r.Choice, len(r.Choices), r.Pin)
	}
	if p := r.Choices[r.Choice].Probability; math.Abs(p-*r.Propensity) > rounding {
		return fmt.Errorf("the choice has probability %v, and the item has propensity %v", p, *r.Propensity)
	}
	sum := 0.0
	for _, c := range r.Choices {
		sum += c.Probability
		if n := len(c.Outputs); n > 0 && n != len(s.weights) {
			return fmt.Errorf("the choice %s has %d outputs, want %d", c.Pin, n, len(s.weights))
		}
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
	probabilities := s.Policy.probabilities(r.Choices, s.weights)
	inside := 0.0
	for i, c := range r.Choices {
		if c.Probability > 0 {
			inside += probabilities[i]
		}
	}
	u := s.users[r.User]
	if u == nil {
		u = &userSums{labels: make([]rewardSums, len(s.labels))}
		s.users[r.User] = u
	}
	each, w := weight(r), probabilities[r.Choice] / *r.Propensity
	u.places += each
	u.inside += each * inside
	u.weights += each * w
	s.squares += each * w * each * w
	for i, label := range s.labels {
		acted := r.Labels[label].Acted
		if acted == nil {
			s.report.Actions[i].Censored++
			continue
		}
		s.report.Actions[i].Items++
		modeled, shown := s.models[i].predict(r, probabilities)
		sums, y := &u.labels[i], reward(*acted)
		sums.items += each
		sums.reward += each * y
		sums.weighted += each * w * y
		sums.weights += each * w
		sums.robust += each * (modeled + w*(y-shown))
	}
	return nil
}

// result returns the estimates, or an error if they are not sound.
func (s *estimation) result() (*PolicyReport, error) {
	var users []*userSums
	for _, name := range slices.Sorted(maps.Keys(s.users)) { // in an order, so that the rounding is the same in each run
		users = append(users, s.users[name])
	}
	for i := range s.report.Actions {
		rate := func(of func(rewardSums) (x, y float64)) *experiment.Estimate {
			return sum(users, func(u *userSums) (x, y float64) { return of(u.labels[i]) }).Ratio()
		}
		a := &s.report.Actions[i]
		a.Logged = rate(func(l rewardSums) (x, y float64) { return l.reward, l.items })
		a.IPS = rate(func(l rewardSums) (x, y float64) { return l.weighted, l.items })
		a.SNIPS = rate(func(l rewardSums) (x, y float64) { return l.weighted, l.weights })
		a.DoublyRobust = rate(func(l rewardSums) (x, y float64) { return l.robust, l.items })
		a.Difference = rate(func(l rewardSums) (x, y float64) { return l.robust - l.reward, l.items })
	}
	r := &s.report
	inside := sum(users, func(u *userSums) (x, y float64) { return u.inside, u.places })
	r.Outside = max(0, 1-inside.X/inside.Y)
	weights := sum(users, func(u *userSums) (x, y float64) { return u.weights, u.places })
	r.MeanWeight = weights.X / weights.Y
	if s.squares > 0 {
		r.EffectiveSampleSize = weights.X * weights.X / s.squares
	}
	r.Overlap = r.EffectiveSampleSize / float64(r.Places)
	excess := sum(users, func(u *userSums) (x, y float64) { return u.weights - u.inside, u.places })
	if err := s.checkOverlap(excess.Ratio()); err != nil {
		return nil, err
	}
	return r, nil
}

// sum adds up a pair of numbers of each user.
func sum(users []*userSums, of func(*userSums) (x, y float64)) (sums experiment.Sums) {
	for _, u := range users {
		sums.Add(of(u))
	}
	return sums
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
	case excess != nil && math.Abs(excess.Value) > extreme*excess.StdErr:
		return fmt.Errorf("the mean weight is %.4g, want %.4g ± %.2g: the logged probabilities are not those of the items that were shown",
			r.MeanWeight, 1-r.Outside, extreme*excess.StdErr)
	}
	return nil
}
