package feature

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// Matrix returns the numbers of features as a model receives them: a row for each pin, with a column for each name. The
// numbers of the user's features are the same in each row. A number is NaN if it is missing for a reason of the data, such as
// an unknown pin.
//
// It returns an error if a feature is unknown or its values are not numbers (see CheckNumbers), and if the answer is degraded.
func (s *Service) Matrix(ctx context.Context, user schemas.UserID, pins []schemas.PinID, names []string) ([][]float64, error) {
	entities, err := entitiesOf(s.definitions.Load().byName, names)
	if err != nil || len(pins) == 0 {
		return nil, err
	}
	req := Request{Features: names}
	if slices.Contains(entities, User) {
		req.Users = []schemas.UserID{user}
	}
	if slices.Contains(entities, Pin) {
		req.Pins = pins
	}
	for i := 0; i < len(pins) && slices.Contains(entities, Pair); i++ {
		req.Pairs = append(req.Pairs, UserPin{user, pins[i]})
	}
	answer, err := s.Answer(ctx, req)
	if err != nil {
		return nil, err
	}
	if len(answer.Degraded) > 0 {
		return nil, fmt.Errorf("features are degraded: %s", strings.Join(answer.Degraded, ", "))
	}
	matrix := make([][]float64, len(pins))
	for i, pin := range pins {
		matrix[i] = answer.row(user, pin, names, entities)
	}
	return matrix, nil
}

// row returns the numbers of a pin. entities has the entity of each feature.
func (a Answer) row(user schemas.UserID, pin schemas.PinID, names []string, entities []Entity) []float64 {
	of := map[Entity]map[string]Value{
		User: a.Values[string(user)], Pin: a.Values[string(pin)], Pair: a.Values[UserPin{user, pin}.String()],
	}
	row := make([]float64, len(names))
	for j, name := range names {
		number, ok := of[entities[j]][name].(Number)
		if row[j] = float64(number); !ok {
			row[j] = math.NaN()
		}
	}
	return row
}

// CheckNumbers returns an error for each name that is not the name of a definition, or whose values are not numbers.
func CheckNumbers(defs []Definition, names []string) error {
	byName := map[string]Definition{}
	for _, d := range defs {
		byName[d.Name] = d
	}
	_, err := entitiesOf(byName, names)
	return err
}

// entitiesOf returns the entity of each feature.
func entitiesOf(defs map[string]Definition, names []string) ([]Entity, error) {
	entities := make([]Entity, len(names))
	var problems []error
	for i, name := range names {
		d, ok := defs[name]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("feature %.64q is not defined", name))
		case !d.isNumber():
			problems = append(problems, fmt.Errorf("the values of feature %s are not numbers", name))
		}
		entities[i] = d.Entity
	}
	return entities, errors.Join(problems...)
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
