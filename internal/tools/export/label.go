package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Label is a column of the files: whether the user acted on the pin with the verb within the window after the visit.
type Label struct {
	Verb   schemas.Verb
	Window time.Duration // at most MaxWindow
}

// MaxWindow is the maximum window of a label: the retention of the topic actions-enriched.
const MaxWindow = 7 * 24 * time.Hour

// ParseLabels parses texts such as save=24h, and sorts the labels by verb. It returns an error for a verb that is not allowed and for a verb with two windows.
func ParseLabels(texts []string, allowed schemas.Verbs) ([]Label, error) {
	if len(texts) == 0 {
		return nil, errors.New("label: want at least one, such as save=24h")
	}
	var labels []Label
	for _, text := range texts {
		label, err := parseLabel(text, allowed)
		if err == nil && slices.ContainsFunc(labels, func(other Label) bool { return other.Verb == label.Verb }) {
			err = errors.New("the verb has another window already")
		}
		if err != nil {
			return nil, fmt.Errorf("label: %q: %w", text, err)
		}
		labels = append(labels, label)
	}
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(string(a.Verb), string(b.Verb)) })
	return labels, nil
}

func parseLabel(text string, allowed schemas.Verbs) (Label, error) {
	verb, window, ok := strings.Cut(text, "=")
	if !ok {
		return Label{}, errors.New("want VERB=WINDOW, such as save=24h")
	}
	if _, known := allowed[schemas.Verb(verb)]; !known {
		return Label{}, fmt.Errorf("unknown verb: want one of %v", slices.Sorted(maps.Keys(allowed)))
	}
	d, err := time.ParseDuration(window)
	if err != nil || d <= 0 || d > MaxWindow {
		return Label{}, fmt.Errorf("window: want a duration above 0, at most %s", MaxWindow)
	}
	return Label{schemas.Verb(verb), d}, nil
}

// windows returns the windows by verb.
func windows(labels []Label) map[string]string {
	byVerb := map[string]string{}
	for _, l := range labels {
		byVerb[string(l.Verb)] = l.Window.String()
	}
	return byVerb
}

// end returns the end of the window of a visit.
func (l Label) end(visit schemas.Micros) schemas.Micros { return visit + schemas.MicrosIn(l.Window) }
