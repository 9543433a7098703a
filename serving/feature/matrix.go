package feature

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Matrix returns the numbers of features as a model receives them: a row for each pin, with a column for each name. The
// numbers of the user's features are the same in each row. A number is NaN if it is missing for a reason of the data, such as
// an unknown pin.
//
// It returns an error if a feature is unknown or its values are not numbers (see CheckNumbers), and if the answer is degraded.
func (s *Service) Matrix(ctx context.Context, user schemas.UserID, pins []schemas.PinID, names []string) ([][]float32, error) {
	if err := CheckNumbers(s.definitions.Load().inOrder, names); err != nil || len(pins) == 0 {
		return nil, err
	}
	req := Request{Features: names, Users: []schemas.UserID{user}, Pins: pins} // an entity without features costs nothing
	for _, pin := range pins {
		req.Pairs = append(req.Pairs, UserPin{user, pin})
	}
	answer, err := s.Answer(ctx, req)
	if err == nil && len(answer.Degraded) > 0 {
		err = fmt.Errorf("features are degraded: %s", strings.Join(answer.Degraded, ", "))
	}
	if err != nil {
		return nil, err
	}
	matrix := make([][]float32, len(pins))
	for i, pair := range req.Pairs {
		for _, name := range names {
			matrix[i] = append(matrix[i], float32(answer.number(name, string(pair.User), string(pair.Pin), pair.String())))
		}
	}
	return matrix, nil
}

// number returns the number of a feature, which one of the entities has, or NaN.
func (a Answer) number(feature string, entities ...string) float64 {
	for _, entity := range entities {
		if n, ok := a.Values[entity][feature].(Number); ok {
			return float64(n)
		}
	}
	return math.NaN()
}

// CheckNumbers returns an error for each name that is not the name of a definition, or whose values are not numbers.
func CheckNumbers(defs []Definition, names []string) error {
	var problems settings.Problems
	for _, name := range names {
		i := slices.IndexFunc(defs, func(d Definition) bool { return d.Name == name })
		problems.Want(i >= 0, "feature %.64q is not defined", name)
		problems.Want(i < 0 || defs[i].isNumber(), "the values of feature %s are not numbers", name)
	}
	return problems.Err()
}

// isNumber reports whether the values of a feature are single numbers. The value of a pair is the number of the pin's group,
// unless the pin can be in several groups.
func (d Definition) isNumber() bool {
	switch d.Aggregate {
	case TakeLast, TakeTop, TakeSequence, MeanEmbedding:
		return false
	}
	return len(d.GroupBy) == 0 || d.Entity == Pair && !d.GroupBy.isList()
}
