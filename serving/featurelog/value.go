package featurelog

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// logged returns a feature's value as the log has it.
func logged(name string, v feature.Value, reasons []string) schemas.FeatureValue {
	out := schemas.FeatureValue{Feature: name, Reasons: reasons}
	switch v := v.(type) {
	case feature.Number:
		x := float64(v)
		out.Number = &x
	case feature.Groups:
		out.Groups = v
	case feature.Vector:
		out.Vector = v
	case feature.Last:
		for _, a := range v {
			out.Last = append(out.Last, schemas.LoggedAction{Object: a.Object, Verb: a.Verb, Time: schemas.MicrosOf(a.Timestamp)})
		}
	case feature.Top:
		for _, c := range v {
			out.Top = append(out.Top, schemas.LoggedCount{Value: c.Value, Count: c.Count})
		}
	}
	return out
}

// missing says that a logged value is there in no form. An empty list or map is one all the same: its reasons tell.
func missing(v schemas.FeatureValue) bool {
	return v.Number == nil && len(v.Groups)+len(v.Vector)+len(v.Last)+len(v.Top) == 0 && slices.ContainsFunc(v.Reasons, isNull)
}

// isNull says that with this reason there is no value. With Overflow there may be one of other groups.
func isNull(reason string) bool {
	switch feature.Reason(reason) {
	case feature.Window, feature.Cap:
		return false
	}
	return true
}

// incomplete says that a value was not evaluated, or of a part of the actions only: there is nothing to compare.
func incomplete(v schemas.FeatureValue) bool {
	for _, r := range v.Reasons {
		switch feature.Reason(r) {
		case feature.Deadline, feature.Failed, feature.Cap, feature.Erased:
			return true
		}
	}
	return false
}
