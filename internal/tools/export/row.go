package export

import (
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// layout returns the columns for visits: those of all their models. A feature that has several values in some visit is a list.
func (e *job) layout(visits []visit) training.Layout {
	widths, outputs := map[string]int{}, map[string]bool{}
	for _, v := range visits {
		for _, f := range v.Features {
			if widths[f.Name] <= 1 {
				widths[f.Name] = int(f.Width)
			}
		}
		for _, name := range v.Outputs {
			outputs[name] = true
		}
	}
	l := training.Layout{Features: []training.Feature{}, Outputs: slices.Sorted(maps.Keys(outputs)), Labels: windows(e.Labels), Topic: e.topic}
	for _, v := range visits { // in the order in which a model receives them
		for _, f := range v.Features {
			if width, missing := widths[f.Name]; missing {
				l.Features = append(l.Features, training.Feature{Name: f.Name, Width: width})
				delete(widths, f.Name)
			}
		}
	}
	return l
}

// row returns the row of an item without its labels.
func row(l training.Layout, v visit, position int) *training.Row {
	item := &v.Items[position]
	r := &training.Row{
		Item: training.Item{
			Visit: v.ID, User: string(v.User), Time: v.Time.Time(), Feed: v.Feed, Arm: v.Arm, ArmShare: v.ArmShare, UserShare: v.UserShare,
			Policy: string(v.Policy), Position: int32(position), Pin: string(item.Pin), Source: string(item.Source), Pool: string(item.Pool),
			Author: string(item.Author), Score: float64(item.RankScore), Choice: item.Choice, Choices: make([]training.Choice, len(item.Choices)),
		},
		Features: features(l, v, item.Values), Outputs: make([]*float64, len(l.Outputs)),
	}
	if item.Propensity > 0 {
		r.Propensity = &item.Propensity
	}
	for i, output := range training.Align(item.Outputs, v.Outputs, l.Outputs) {
		r.Outputs[i] = number(output)
	}
	for i, c := range item.Choices {
		r.Choices[i] = training.Choice{
			Source: string(c.Source), SourceProbability: c.SourceProbability, Pin: string(c.Pin), Probability: c.Probability,
			Score: float64(c.RankScore), Outputs: training.Align(c.Outputs, v.Outputs, l.Outputs),
		}
	}
	return r
}

// features returns the values that the model received, in the order of the layout.
func features(l training.Layout, v visit, values []schemas.LoggedNumber) [][]float64 {
	byName := map[string][]float64{}
	for _, f := range v.Features {
		if len(values) < int(f.Width) {
			break // the model received none
		}
		for _, n := range values[:f.Width] {
			byName[f.Name] = append(byName[f.Name], float64(n))
		}
		values = values[f.Width:]
	}
	list := make([][]float64, len(l.Features))
	for i, f := range l.Features {
		if list[i] = byName[f.Name]; f.Width == 1 && len(list[i]) == 1 && math.IsNaN(list[i][0]) {
			list[i] = nil
		}
	}
	return list
}

// number returns nil for NaN.
func number(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}
