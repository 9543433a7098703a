package feature

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// definitionSet holds the definitions that requests can name at one moment.
type definitionSet struct {
	inOrder []Definition
	byName  map[string]Definition

	mu    sync.Mutex
	known map[string]*chosen // by names: models request the same list again and again
}

// maxKnown is the maximum number of cached lists of names. Above it, the list of each request is compiled from scratch.
const maxKnown = 256

func newDefinitionSet(defs []Definition) (*definitionSet, error) {
	set := &definitionSet{inOrder: slices.Clone(defs), byName: map[string]Definition{}, known: map[string]*chosen{}}
	for _, d := range defs {
		if _, ok := set.byName[d.Name]; ok {
			return nil, fmt.Errorf("two definitions of %s", d.Name)
		}
		set.byName[d.Name] = d
	}
	return set, nil
}

// choose returns the definitions with these names, each once. It reports problems with the names to c.
func (s *definitionSet) choose(c *checker, names []string) *chosen {
	key := strings.Join(names, "\x00")
	unique := strings.Count(key, "\x00") == len(names)-1 // a requested name may contain the separator; no such name is defined
	s.mu.Lock()
	known := s.known[key]
	s.mu.Unlock()
	if known != nil && unique {
		return known
	}
	before := len(c.problems)
	all := s.find(c, names)
	all.actions, all.items = compile(slices.Concat(all.ofUser, all.ofPair)), compile(all.ofPin)
	if len(c.problems) > before {
		return all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) < maxKnown {
		s.known[key] = all
	}
	return all
}

func (s *definitionSet) find(c *checker, names []string) *chosen {
	all := &chosen{}
	if len(names) == 0 {
		c.problem("features: want at least one name")
	}
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
	return all
}
