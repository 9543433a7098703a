package feature

import (
	"fmt"
	"slices"
)

// definitionSet holds the definitions that requests can name at one moment. It is immutable.
type definitionSet struct {
	inOrder []Definition
	byName  map[string]Definition
	sets    map[string][]string // see Sets
}

func newDefinitionSet(defs []Definition) (*definitionSet, error) {
	set := &definitionSet{inOrder: slices.Clone(defs), byName: map[string]Definition{}, sets: Sets(defs)}
	for _, d := range defs {
		if _, ok := set.byName[d.Name]; ok {
			return nil, fmt.Errorf("two definitions of %s", d.Name)
		}
		set.byName[d.Name] = d
	}
	return set, nil
}

// choose returns the definitions with these names and those of the sets, each once. It reports problems to c.
func (s *definitionSet) choose(c *checker, names, sets []string) *chosen {
	all := &chosen{}
	if len(names)+len(sets) == 0 {
		c.problem("features: want at least one name")
	}
	names = s.named(c, names, sets)
	if len(names) > MaxFeatures {
		c.problem("features: %d: at most %d", len(names), MaxFeatures)
		return all
	}
	for i, name := range names {
		d, ok := s.byName[name]
		switch {
		case !ok:
			c.problem("features: %.64q is not defined", name)
		case slices.Contains(names[:i], name):
		case d.Entity == Pin:
			all.ofPin = append(all.ofPin, d)
		case d.Entity == Pair:
			all.ofPair = append(all.ofPair, d)
		default:
			all.ofUser = append(all.ofUser, d)
		}
	}
	all.actions, all.items = compile(slices.Concat(all.ofUser, all.ofPair)), compile(all.ofPin)
	return all
}
