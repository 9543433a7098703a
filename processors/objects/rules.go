package objects

import (
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

const attributePrefix = "attributes."

// isBot reports whether any rule matches the action.
func isBot(rules []BotRule, e *schemas.ActionEvent) bool {
	return slices.ContainsFunc(rules, func(r BotRule) bool { return r.matches(e) })
}

func (r BotRule) matches(e *schemas.ActionEvent) bool {
	if !strings.HasPrefix(string(e.Actor), r.ActorPrefix) {
		return false
	}
	if r.Attribute == "" {
		return true
	}
	value, ok := e.Attributes[r.Attribute]
	return ok && (r.Equals == "" || value == r.Equals) &&
		strings.Contains(strings.ToLower(value), strings.ToLower(r.Contains))
}

// quality returns the product of the factors of all rules that the create matches, or 1 if none does.
func quality(rules []QualityRule, e *schemas.PinEvent) float64 {
	q := 1.0
	for _, r := range rules {
		if r.matches(e) {
			q *= r.Factor
		}
	}
	return q
}

func (r QualityRule) matches(e *schemas.PinEvent) bool {
	var text string
	switch r.Field {
	case "interests":
		return len(e.Interests) > 0
	case "embedding":
		return len(e.Embedding) > 0
	case "title":
		text = e.Title
	case "link":
		text = e.Link
	case "board":
		text = string(e.Board)
	default:
		text = e.Attributes[strings.TrimPrefix(r.Field, attributePrefix)]
	}
	return text != "" && (r.Equals == "" || text == r.Equals)
}
