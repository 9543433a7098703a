package feature

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MaxSets is the maximum number of feature sets of a file, and of a request.
const MaxSets = 100

// Sets returns the names of the features of each feature set, in the order of the definitions.
func Sets(defs []Definition) map[string][]string {
	sets := map[string][]string{}
	for _, d := range defs {
		for _, name := range d.Sets {
			sets[name] = append(sets[name], d.Name)
		}
	}
	return sets
}

// sets reads feature_sets, and adds the name of each set to its definitions.
func (p *parser) sets(defs []Definition, n *yaml.Node) {
	defined := func(s string) (string, error) {
		if !slices.ContainsFunc(defs, func(d Definition) bool { return d.Name == s }) {
			return "", errors.New("no such feature in this file")
		}
		return s, nil
	}
	if len(n.Content)/2 > MaxSets {
		p.at(n.Line, "feature_sets: %d sets: at most %d", len(n.Content)/2, MaxSets)
		return
	}
	for key, value := range p.entries(n, "feature_sets") {
		set := scalar(p, key, "feature_sets", parseName)
		members := parseList(p, value, "feature_sets "+key.Value, MaxFeatures, defined)
		if len(members) == 0 {
			p.at(value.Line, "feature_sets %s: no features", key.Value)
		}
		for i := range defs {
			if slices.Contains(members, defs[i].Name) {
				defs[i].Sets = append(defs[i].Sets, set)
			}
		}
	}
}

// named returns the names and those of the sets' features. It reports problems with the sets to c.
func (s *definitionSet) named(c *checker, names, sets []string) []string {
	if len(sets) > MaxSets {
		c.problem("feature_sets: %d: at most %d", len(sets), MaxSets)
		return names
	}
	all := slices.Clone(names)
	for _, set := range sets {
		members, ok := s.sets[set]
		if !ok {
			c.problem("feature_sets: %.64q is not defined", set)
		}
		for _, name := range members {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
