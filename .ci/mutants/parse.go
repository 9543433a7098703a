package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// within is the time limit of the tests of a mutant without one.
const within = 20 * time.Second

// parse reads the list of mutants; mutants.txt describes its format.
func parse(text string) (all []*mutant, err error) {
	var m *mutant // nil: the next line is the name of one
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			m = nil
		case m == nil:
			m = &mutant{name: line, at: fmt.Sprintf("mutants.txt:%d", i+1), within: within}
			all = append(all, m)
		default:
			if err := m.set(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	return all, validate(all)
}

// set takes a line after the name.
func (m *mutant) set(line string) (err error) {
	key, value, _ := strings.Cut(line, " ")
	switch value = strings.TrimSpace(value); {
	case line[0] == '-':
		m.before = append(m.before, line[1:])
	case line[0] == '+':
		m.after = append(m.after, line[1:])
	case key == "file":
		m.file = value
	case key == "test":
		m.pkg, m.tests, _ = strings.Cut(value, " ")
	case key == "within":
		m.within, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("%q: want file, test, within, or a line that begins with - or +", key)
	}
	return err
}

func validate(all []*mutant) error {
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			return fmt.Errorf("%s: there are two mutants %q", m.at, m.name)
		}
		if m.file == "" || m.pkg == "" || m.tests == "" || len(m.before) == 0 || slices.Equal(m.before, m.after) {
			return fmt.Errorf("%s: %s: want file, test, and two different texts", m.at, m.name)
		}
		names[m.name] = true
	}
	return nil
}
