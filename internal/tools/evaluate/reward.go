package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/smartfeed/smartfeed/internal/training"
)

const (
	intercepts = 32   // of the sources, by their hash
	penalty    = 1e-3 // of squared coefficients, relative to the sum of squares of their column
)

// rewardModel is a ridge regression of the reward of a choice on its score, its outputs, its source and its position.
type rewardModel struct {
	outputs   []string
	row       []float64   // of the regression, with the reward in the last column; is reused
	equations [][]float64 // normal equations; the last column has the right side, and after solve the coefficients
}

func newRewardModel(outputs []string) *rewardModel {
	m := &rewardModel{outputs: outputs, row: make([]float64, 3+intercepts+len(outputs)+1)}
	for range len(m.row) - 1 {
		m.equations = append(m.equations, make([]float64, len(m.row)))
	}
	return m
}

// columns returns the values of a choice at a row's place, which are valid until the next call. best is the highest score of
// the place: scores contain the age of pins, so only their differences within a place matter.
func (m *rewardModel) columns(r *training.Row, c training.Choice, best float64) []float64 {
	clear(m.row)
	m.row[0], m.row[1], m.row[2] = 1, c.Score-best, 1/float64(1+r.Position)
	m.row[3+xxhash.Sum64String(c.Source)%intercepts] = 1
	for i, output := range m.outputs {
		if n := c.Outputs[output]; !math.IsNaN(n) {
			m.row[3+intercepts+i] = n
		}
	}
	return m.row
}

// best returns the highest score of a row's choices.
func best(r *training.Row) float64 {
	return slices.MaxFunc(r.Choices, func(a, b training.Choice) int { return cmp.Compare(a.Score, b.Score) }).Score
}

// add adds the shown choice of a row.
func (m *rewardModel) add(r *training.Row, reward float64) {
	x := m.columns(r, r.Choices[r.Choice], best(r))
	x[len(x)-1] = reward
	for i, equation := range m.equations {
		if x[i] == 0 { // most are intercepts of other sources
			continue
		}
		for k := range x {
			equation[k] += x[i] * x[k]
		}
	}
}

// solve computes the coefficients, by Gauss-Jordan elimination in place, which is stable because the penalty makes the equations
// positive definite. A column without values has the coefficient 0.
func (m *rewardModel) solve() {
	e := m.equations
	for i := range e {
		e[i][i] = e[i][i]*(1+penalty) + math.SmallestNonzeroFloat64
	}
	for i := range e {
		for k := range e {
			factor := e[k][i] / e[i][i]
			for j := 0; j < len(e[k]) && k != i; j++ {
				e[k][j] -= factor * e[i][j]
			}
		}
	}
	for i := range e {
		e[i][len(e)] /= e[i][i]
	}
}

// predict returns the expected reward of a row's place under the given probabilities, and that of the shown choice.
func (m *rewardModel) predict(r *training.Row, probabilities []float64) (mean, shown float64) {
	best := best(r)
	for i, c := range r.Choices {
		y := 0.0
		x := m.columns(r, c, best)
		for k, equation := range m.equations {
			y += x[k] * equation[len(m.equations)]
		}
		mean += probabilities[i] * y
		if i == int(r.Choice) {
			shown = y
		}
	}
	return mean, shown
}
