package featurelog

import (
	"encoding/json"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// logged converts a feature's value to its form in the log.
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
	case feature.Sequence:
		text, err := json.Marshal(v)
		if err == nil { // its numbers are finite
			out.Sequence = string(text)
		}
	}
	return out
}

// missing reports whether a logged value is null. For an empty list or map, the reasons decide.
func missing(v schemas.FeatureValue) bool {
	return v.Number == nil && len(v.Groups)+len(v.Vector)+len(v.Last)+len(v.Top)+len(v.Sequence) == 0 && slices.ContainsFunc(v.Reasons, isNull)
}

// isNull reports whether a value with this reason may be null. With Overflow there may be a value of other groups.
func isNull(reason string) bool {
	r := feature.Reason(reason)
	return r != feature.Window && r != feature.Cap
}

// incomplete reports whether a value was not evaluated, or only from a part of the actions. It cannot be compared.
func incomplete(v schemas.FeatureValue) bool {
	reasons := []feature.Reason{feature.Deadline, feature.Failed, feature.TooLarge, feature.Cap, feature.Erased}
	return slices.ContainsFunc(v.Reasons, func(r string) bool { return slices.Contains(reasons, feature.Reason(r)) })
}
