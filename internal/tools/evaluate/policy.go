package evaluate

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/training"
)

// Policy is a policy to estimate. At a place, it draws a source by its share among the sources that have choices, and then a
// choice of this source with softmax((score·generator's score + Σ utility·outputs) / temperature).
type Policy struct {
	Feed        string             `yaml:"feed"`
	Shares      map[string]float64 `yaml:"shares"`                     // by source, relative to each other; empty: as logged
	Utility     map[string]float64 `yaml:"utility"`                    // weights of the model's outputs
	Score       float64            `yaml:"score" range:"-1e6..1e6"`    // weight of the generator's score
	Temperature float64            `yaml:"temperature" range:"0..1e6"` // 0: the choices of a source keep their logged probabilities
}

// ReadPolicy reads a policy from a file.
func ReadPolicy(path string) (*Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	p := &Policy{}
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("read policy %s: %w", path, err)
	}
	return p, nil
}

// maxNumber bounds the numbers of a policy, so that no sum overflows.
const maxNumber = 1e6

func (p *Policy) validate() error {
	problems := settings.Problems{settings.Validate(p)}
	problems.Want(p.Feed != "", "feed: want the name of a feed")
	total := 0.0
	for _, source := range slices.Sorted(maps.Keys(p.Shares)) {
		problems.Add(settings.Within("shares."+source, p.Shares[source], 0, maxNumber))
		total += p.Shares[source]
	}
	problems.Want(len(p.Shares) == 0 || total != 0, "shares: all are 0: want one above 0")
	for _, output := range slices.Sorted(maps.Keys(p.Utility)) {
		problems.Add(settings.Within("utility."+output, p.Utility[output], -maxNumber, maxNumber))
	}
	ranks := len(p.Utility) > 0 || p.Score != 0
	problems.Want(ranks == (p.Temperature > 0), "temperature: want above 0 with utility or score, and no temperature without them")
	return problems.Err()
}

// outputs returns those of the log's outputs that the policy uses.
func (p *Policy) outputs(logged []string) (used []string, err error) {
	for _, output := range slices.Sorted(maps.Keys(p.Utility)) {
		if !slices.Contains(logged, output) {
			return nil, fmt.Errorf("policy: utility.%s: the log has the outputs %q", output, logged)
		}
		if p.Utility[output] != 0 { // others may be NaN
			used = append(used, output)
		}
	}
	return used, nil
}

// probabilities returns the probability of each choice under the policy. They add up to 0 if all sources of the place have the
// share 0. outputs are those that the policy uses.
func (p *Policy) probabilities(choices []training.Choice, outputs []string) []float64 {
	list, best, sums, shares := make([]float64, len(choices)), map[string]float64{}, map[string]float64{}, 0.0
	for i, c := range choices {
		list[i] = p.logit(c, outputs)
		highest, known := best[c.Source]
		if !known {
			shares += p.share(c)
		}
		if !known || list[i] > highest {
			best[c.Source] = list[i]
		}
	}
	for i, c := range choices {
		list[i] = math.Exp(list[i] - best[c.Source]) // at most 1, so that nothing overflows
		sums[c.Source] += list[i]
	}
	for i, c := range choices {
		list[i] *= p.share(c) / max(shares, math.SmallestNonzeroFloat64) / sums[c.Source]
	}
	return list
}

// share returns the share of a choice's source.
func (p *Policy) share(c training.Choice) float64 {
	if len(p.Shares) > 0 {
		return p.Shares[c.Source]
	}
	return c.SourceProbability
}

// logit returns the logarithm of the weight of a choice within its source.
func (p *Policy) logit(c training.Choice, outputs []string) float64 {
	if p.Temperature == 0 {
		return math.Log(max(c.Probability, math.SmallestNonzeroFloat64))
	}
	sum := p.Score * c.Score
	for _, output := range outputs {
		sum += p.Utility[output] * c.Outputs[output]
	}
	return sum / p.Temperature
}
