package main

import (
	"fmt"
	"strings"
	"time"
)

// within is how long the tests of a mutant may run that does not say.
const within = 20 * time.Second

// parse reads the list of mutants; mutants.txt describes its format.
func parse(text string) (all []mutant, err error) {
	names := map[string]bool{}
	for _, block := range blocks(text) {
		m, err := parseOne(block)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", block.line, err)
		}
		if names[m.name] {
			return nil, fmt.Errorf("line %d: there are two mutants %q", block.line, m.name)
		}
		names[m.name] = true
		all = append(all, m)
	}
	return all, nil
}

// block is the lines of one mutant.
type block struct {
	line  int // of its first
	lines []string
}

// blocks splits a text at empty lines, and leaves comments out.
func blocks(text string) (all []block) {
	open := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			open = false
		case !open:
			all, open = append(all, block{i + 1, []string{line}}), true
		default:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	return all
}

func parseOne(b block) (mutant, error) {
	m := mutant{at: fmt.Sprintf("mutants.txt:%d", b.line), within: within, name: b.lines[0]}
	var before, after []string
	for _, line := range b.lines[1:] {
		if text, ok := strings.CutPrefix(line, "-"); ok {
			before = append(before, text)
			continue
		}
		if text, ok := strings.CutPrefix(line, "+"); ok {
			after = append(after, text)
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if err := m.set(key, strings.TrimSpace(value)); err != nil {
			return m, err
		}
	}
	m.before, m.after = strings.Join(before, "\n"), strings.Join(after, "\n")
	if m.file == "" || m.pkg == "" || m.tests == "" || m.before == "" || m.before == m.after {
		return m, fmt.Errorf("%s: want file, test, and two different texts", m.name)
	}
	return m, nil
}

// set takes a line that is not part of the change.
func (m *mutant) set(key, value string) (err error) {
	switch key {
	case "file":
		m.file = value
	case "test":
		m.pkg, m.tests, _ = strings.Cut(value, " ")
	case "within":
		m.within, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("%q: want file, test, within, or a line that begins with - or +", key)
	}
	return err
}
