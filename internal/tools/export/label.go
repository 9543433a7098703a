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

// Labels are columns of the files, by verb: whether the user acted on the pin with the verb within the window after the visit. A
// window is at most MaxWindow.
type Labels map[schemas.Verb]time.Duration

// MaxWindow is the maximum window of a label: the retention of the topic actions-enriched.
const MaxWindow = 7 * 24 * time.Hour

// ParseLabels parses texts such as save=24h. It returns an error for a verb that is not allowed and for a verb with two windows.
func ParseLabels(texts []string, allowed schemas.Verbs) (Labels, error) {
	if len(texts) == 0 {
		return nil, errors.New("label: want at least one, such as save=24h")
	}
	labels := Labels{}
	for _, text := range texts {
		if err := labels.add(text, allowed); err != nil {
			return nil, fmt.Errorf("label: %q: %w", text, err)
		}
	}
	return labels, nil
}

func (l Labels) add(text string, allowed schemas.Verbs) error {
	name, text, ok := strings.Cut(text, "=")
	verb := schemas.Verb(name)
	if !ok {
		return errors.New("want VERB=WINDOW, such as save=24h")
	}
	if _, known := allowed[verb]; !known {
		return fmt.Errorf("unknown verb: want one of %v", slices.Sorted(maps.Keys(allowed)))
	}
	if _, repeated := l[verb]; repeated {
		return errors.New("the verb has another window already")
	}
	window, err := time.ParseDuration(text)
	if err != nil || window <= 0 || window > MaxWindow {
		return fmt.Errorf("window: want a duration above 0, at most %s", MaxWindow)
	}
	l[verb] = window
	return nil
}

// longest returns the longest window.
func (l Labels) longest() time.Duration {
	return slices.Max(append(slices.Collect(maps.Values(l)), 0))
}

// texts returns the windows by verb, as in training.Layout.
func (l Labels) texts() map[string]string {
	byVerb := map[string]string{}
	for verb, window := range l {
		byVerb[string(verb)] = window.String()
	}
	return byVerb
}
