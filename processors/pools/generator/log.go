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
			item.Values, item.Outputs = m.valuesAt(at), m.outputsAt(v.Outputs, at)
		}
		for j := range item.Choices {
			if at, received := row[item.Choices[j].Pin]; received {
				item.Choices[j].Outputs = m.outputsAt(v.Outputs, at)
			}
		}
	}
}

func (m *inferred) valuesAt(row int) (list []schemas.LoggedNumber) {
	if len(m.features) == 0 {
		return nil
	}
	for _, value := range m.request.Values[row] {
		list = append(list, schemas.LoggedNumber(value))
	}
	return list
}

func (m *inferred) outputsAt(names []string, row int) []schemas.LoggedNumber {
	list := make([]schemas.LoggedNumber, len(names))
	for i, name := range names {
		list[i] = schemas.LoggedNumber(m.outputs[name][row])
	}
	return list
}
