package generator

import (
	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxChoiceBytes bounds the choices in the log of a visit; see maxShownBytes. Without choices, the log of 100 items with the longest
// ids and 100 features has about 180 KB.
const maxChoiceBytes = 192 << 10

// inferred is an answered request to the model.
type inferred struct {
	features []string // the columns of request.Values
	request  inference.Request
	outputs  inference.Outputs
}

// log returns the log of a visit, without the fields of its Served.
func (g *Generator) log(c *composition, visit rules.Visit) *schemas.LoggedVisit {
	v := c.rules.Logged(visit, g.deps.Extensions.admitted(c), c.signals)
	v.ArmShare, v.UserShare, v.Degraded = c.feeds.ArmShares()[c.Feed][c.arm], g.cfg.VisitLogShare, c.degraded
	if c.inferred != nil {
		c.inferred.addTo(&v)
	}
	v.LimitChoices(maxChoiceBytes)
	return &v
}

// addTo adds the values that the model received, and its outputs. A pin of several sources has several rows in the request. The score
// of the pin comes from the last one.
func (m *inferred) addTo(v *schemas.LoggedVisit) {
	for _, name := range m.features {
		v.Features = append(v.Features, schemas.LoggedFeature{Name: name, Width: 1})
	}
	v.Outputs = m.outputs.Names
	values, outputs := map[schemas.PinID][]schemas.LoggedNumber{}, map[schemas.PinID][]schemas.LoggedNumber{}
	for i := range m.request.Candidates {
		pin := m.request.Candidates[i].Pin
		outputs[pin] = logged(m.outputs.Rows[i])
		if len(m.features) > 0 {
			values[pin] = logged(m.request.Values[i])
		}
	}
	for i := range v.Items {
		item := &v.Items[i]
		item.Values, item.Outputs = values[item.Pin], outputs[item.Pin]
		for j := range item.Choices {
			item.Choices[j].Outputs = outputs[item.Choices[j].Pin]
		}
	}
}

func logged[T float32 | float64](numbers []T) []schemas.LoggedNumber {
	list := make([]schemas.LoggedNumber, len(numbers))
	for i, n := range numbers {
		list[i] = schemas.LoggedNumber(n)
	}
	return list
}
