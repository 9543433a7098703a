package feature

import (
	"encoding/json"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// MaxKeys is the maximum number of paths of a Grouping.
const MaxKeys = 3

// Grouping lists the paths that actions are grouped by, each once; none: no grouping. An action is in the group of each
// combination of its values at the paths. It is in no group if it has no value at one of them.
type Grouping []Path

// MarshalJSON writes a single path as a text, and several as a list.
func (g Grouping) MarshalJSON() ([]byte, error) {
	if len(g) == 1 {
		return json.Marshal(g[0])
	}
	return json.Marshal([]Path(g))
}

// GroupName returns the name of a group from its value at each path: the value itself, or several joined by "|". In the
// name of several values, a "\" precedes every "|" and "\" of a value.
func GroupName(values ...string) string {
	if len(values) == 1 {
		return values[0]
	}
	name := make([]byte, 0, 128)
	for i, v := range values {
		if i > 0 {
			name = append(name, '|')
		}
		for j := range len(v) {
			if v[j] == '|' || v[j] == '\\' {
				name = append(name, '\\')
			}
			name = append(name, v[j])
		}
	}
	return string(name)
}

// appendGroups appends the names of the groups of the action.
func (in *actionInput) appendGroups(dst []string, by Grouping) []string {
	if len(by) == 1 {
		return by[0].appendValues(dst, in.EnrichedAction)
	}
	return in.appendCombinations(dst, by, make([]string, 0, MaxKeys))
}

// appendCombinations appends the names of the groups that have the chosen values at the paths before by.
func (in *actionInput) appendCombinations(dst []string, by Grouping, chosen []string) []string {
	if len(by) == 0 {
		return append(dst, GroupName(chosen...))
	}
	from := len(in.keys)
	in.keys = by[0].appendValues(in.keys, in.EnrichedAction)
	for _, v := range in.keys[from:] {
		dst = in.appendCombinations(dst, by[1:], append(chosen, v))
	}
	in.keys = in.keys[:from]
	return dst
}

// ofPin returns the names of the groups that a pin is in. Path.ofPin holds for all paths.
func (g Grouping) ofPin(pin schemas.PinID, own PinAttributes) []string {
	in := actionInput{EnrichedAction: &schemas.EnrichedAction{
		Object: schemas.ID(pin), ObjectAttributes: schemas.ObjectAttributes{Facets: own.Facets, Attributes: own.Attributes},
	}}
	return in.appendGroups(nil, g)
}

// isList reports whether a pin can be in several groups.
func (g Grouping) isList() bool { return slices.ContainsFunc(g, Path.isList) }
