package generator

import (
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxLoggedBytes bounds the log of a visit in a Served; see maxShownBytes. Without choices, the log of 100 items with the longest
// ids and 100 features has about 180 KB.
const maxLoggedBytes = 256 << 10

// inferred is an answered request to the model.
type inferred struct {
	features []string // the columns of request.Values
	request  inference.Request
	outputs  inference.Outputs
}

// log returns the log of a visit, without the fields of its Served.
func (g *Generator) log(c *composition, visit rules.Visit) *schemas.LoggedVisit {
	v := c.rules.Logged(visit, g.deps.Extensions.admitted(c), c.signals)
	v.ArmShare, v.UserShare, v.Degraded = c.feeds.ArmShare(c.Feed, c.arm), g.cfg.VisitLogShare, c.degraded
	if c.inferred != nil {
		c.inferred.addTo(&v)
	}
	v.LimitBytes(maxLoggedBytes)
	return &v
}

// addTo adds the values that the model received, and its outputs. A pin of several sources has several rows in the request. The score
// of the pin comes from the last one.
func (m *inferred) addTo(v *schemas.LoggedVisit) {
	for _, name := range m.features {
		v.Features = append(v.Features, schemas.LoggedFeature{Name: name, Width: 1})
	}
	v.Outputs = slices.Sorted(maps.Keys(m.outputs))
	row := make(map[schemas.PinID]int, len(m.request.Candidates))
	for i := range m.request.Candidates {
		row[m.request.Candidates[i].Pin] = i
	}
	for i := range v.Items {
		item := &v.Items[i]
		if at, received := row[item.Pin]; received {
			item.Values, item.Outputs = m.at(at, v.Outputs)
		}
		for j := range item.Choices {
			if at, received := row[item.Choices[j].Pin]; received {
				_, item.Choices[j].Outputs = m.at(at, v.Outputs)
			}
		}
	}
}

// at returns the values of a row, and the outputs for it in the order of names.
func (m *inferred) at(row int, names []string) (values, outputs []schemas.LoggedNumber) {
	for i := range m.features {
		values = append(values, schemas.LoggedNumber(m.request.Values[row][i]))
	}
	for _, name := range names {
		outputs = append(outputs, schemas.LoggedNumber(m.outputs[name][row]))
	}
	return values, outputs
}
