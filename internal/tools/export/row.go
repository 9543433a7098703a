package export

import (
	"slices"

	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// layout returns the columns for visits: those of all their models.
func (e *job) layout(visits []*schemas.LoggedVisit) training.Layout {
	l := training.Layout{Features: []string{}, Labels: e.Labels.texts(), Topic: e.topic}
	for _, v := range visits {
		for _, f := range v.Features { // in the order in which a model receives them
			if !slices.Contains(l.Features, f.Name) {
				l.Features = append(l.Features, f.Name)
			}
		}
		l.Outputs = append(l.Outputs, v.Outputs...)
	}
	slices.Sort(l.Outputs)
	l.Outputs = slices.Compact(l.Outputs)
	return l
}

// row returns the columns of an item.
func (v *item) row() (training.Item, training.Columns) {
	item, columns := &v.Items[v.position], training.Columns{}
	r := training.Item{
		Visit: v.ID, User: string(v.User), Time: v.Time.Time(), Feed: v.Feed, Arm: v.Arm, ArmShare: v.ArmShare, UserShare: v.UserShare,
		Policy: v.Policy, Position: int32(v.position), Pin: string(item.Pin), Source: string(item.Source), Pool: string(item.Pool),
		Author: string(item.Author), Score: float64(item.RankScore), Propensity: item.Propensity, Choice: item.Choice,
	}
	for _, c := range item.Choices {
		r.Choices = append(r.Choices, training.Choice{
			Source: string(c.Source), SourceProbability: c.SourceProbability, Pin: string(c.Pin), Probability: c.Probability,
			Score: float64(c.RankScore), Outputs: v.byName(c.Outputs),
		})
	}
	for name, n := range v.byName(item.Outputs) {
		columns[training.OutputPrefix+name] = n
	}
	for i, f := range v.Features {
		if i < len(item.Values) { // there are none if the model did not receive the item
			columns[training.FeaturePrefix+f.Name] = float64(item.Values[i])
		}
	}
	for verb, first := range v.first {
		name := training.LabelPrefix + string(verb)
		columns[name], columns[name+training.AfterSuffix] = 1, float64(first-v.Time)/1e6
	}
	return r, columns
}

// byName returns the outputs of the model by their names.
func (v *item) byName(outputs []schemas.LoggedNumber) map[string]float64 {
	named := map[string]float64{}
	for i, n := range outputs {
		named[v.Outputs[i]] = float64(n)
	}
	return named
}
