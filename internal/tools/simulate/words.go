package simulate

import (
	_ "embed"
	"strings"
)

// words has a line per list: its name, a colon, and its words, separated by commas. The list of an interest has the
// subjects of its pins.
//
//go:embed words.txt
var words string

// vocabulary is the parsed word lists.
type vocabulary struct {
	names, cities, adjectives, themes, surfaces, devices []string
	tails                                                []string // each with a leading space, the first empty
	interests                                            []interest
}

type interest struct {
	name     string
	subjects []string
}

func newVocabulary() *vocabulary {
	v, lists := &vocabulary{tails: []string{""}}, map[string][]string{}
	for line := range strings.Lines(words) {
		name, list, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		lists[name] = strings.Split(list, ", ")
		if name, ok := strings.CutPrefix(name, "interest:"); ok {
			v.interests = append(v.interests, interest{name, strings.Split(list, ", ")})
		}
	}
	v.names, v.cities, v.adjectives, v.themes = lists["names"], lists["cities"], lists["adjectives"], lists["themes"]
	v.surfaces, v.devices = lists["surfaces"], lists["devices"]
	for _, tail := range lists["tails"] {
		v.tails = append(v.tails, " "+tail)
	}
	return v
}
