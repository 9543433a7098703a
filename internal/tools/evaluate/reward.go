package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/smartfeed/smartfeed/internal/training"
)

const (
	folds      = 5
	maxSources = 8    // sources with their own intercept
	penalty    = 1e-3 // of squared coefficients, relative to the sum of squares of their column
)

// rewardModel is a ridge regression of the reward of a choice on its score, its outputs, its source and its position. It has
// one fit per fold, to the rows of the other folds.
type rewardModel struct {
	sources      []string
	row          []float64 // is reused
	equations    [folds]equations
	coefficients [folds][]float64
}

// equations are the normal equations of a regression.
type equations struct {
	xx [][]float64 // the lower triangle
	xy []float64
}

func newRewardModel(outputs int) *rewardModel {
	m := &rewardModel{row: make([]float64, 3+maxSources+outputs)}
	for f := range m.equations {
		m.equations[f].xy = make([]float64, len(m.row))
		for i := range m.row {
			m.equations[f].xx = append(m.equations[f].xx, make([]float64, i+1))
		}
	}
	return m
}

// columns returns the values of a choice at a row's place, which are valid until the next call. best is the highest score of
// the place: scores contain the age of pins, so only their differences within a place matter.
func (m *rewardModel) columns(r *training.Row, c training.Choice, best float64) []float64 {
	clear(m.row)
	m.row[0], m.row[1], m.row[2] = 1, c.Score-best, 1/float64(1+r.Position)
	i := slices.Index(m.sources, c.Source)
	if i < 0 && len(m.sources) < maxSources {
		i, m.sources = len(m.sources), append(m.sources, c.Source)
	}
	if i >= 0 {
		m.row[3+i] = 1
	}
	for i, output := range c.Outputs {
		if !math.IsNaN(output) {
			m.row[3+maxSources+i] = output
		}
	}
	return m.row
}

// best returns the highest score of a row's choices.
func best(r *training.Row) float64 {
	return slices.MaxFunc(r.Choices, func(a, b training.Choice) int { return cmp.Compare(a.Score, b.Score) }).Score
}

// foldOf returns the fold of a user.
func foldOf(user string) int { return int(xxhash.Sum64String(user) % folds) }

// add adds the shown choice of a row to the fits of the folds without its user.
func (m *rewardModel) add(r *training.Row, reward float64) {
	x, own := m.columns(r, r.Choices[r.Choice], best(r)), foldOf(r.User)
	for f := range m.equations {
		if f != own {
			m.equations[f].add(x, reward)
		}
	}
}

// add adds a row of the regression.
func (e equations) add(x []float64, y float64) {
	for i, xi := range x {
		if xi == 0 {
			continue
		}
		e.xy[i] += xi * y
		for k, xk := range x[:i+1] {
			e.xx[i][k] += xi * xk
		}
	}
}

// solve computes the coefficients of all folds.
func (m *rewardModel) solve() {
	for f := range m.equations {
		m.coefficients[f] = m.equations[f].solve()
	}
}

// solve returns the coefficients, by Cholesky's decomposition in place. A column without values has the coefficient 0.
func (e equations) solve() []float64 {
	x := slices.Clone(e.xy)
	for i, row := range e.xx {
		row[i] = row[i]*(1+penalty) + math.SmallestNonzeroFloat64
		for k := range i + 1 {
			sum := row[k]
			for j := range k {
				sum -= row[j] * e.xx[k][j]
			}
			if k < i {
				row[k] = sum / e.xx[k][k]
			} else {
				row[i] = math.Sqrt(sum)
			}
		}
		for k := range i {
			x[i] -= row[k] * x[k]
		}
		x[i] /= row[i]
	}
	for i := len(x) - 1; i >= 0; i-- {
		for k := i + 1; k < len(x); k++ {
			x[i] -= e.xx[k][i] * x[k]
		}
		x[i] /= e.xx[i][i]
	}
	return x
}

// predict returns the expected reward of a row's place under the given probabilities, and that of the shown choice.
func (m *rewardModel) predict(r *training.Row, probabilities []float64) (mean, shown float64) {
	coefficients, best := m.coefficients[foldOf(r.User)], best(r)
	for i, c := range r.Choices {
		y := 0.0
		for k, x := range m.columns(r, c, best) {
			y += x * coefficients[k]
		}
		mean += probabilities[i] * y
		if i == int(r.Choice) {
			shown = y
		}
	}
	return mean, shown
}
