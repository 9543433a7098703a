package objects

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestIsBot(t *testing.T) {
	rules := []BotRule{
		{ActorPrefix: "user:crawler-"},
		{Attribute: "bot", Equals: "true"},
		{Attribute: "agent", Contains: "Bot"},
		{ActorPrefix: "user:t-", Attribute: "test"},
	}
	tests := []struct {
		name       string
		actor      schemas.UserID
		attributes map[string]string
		want       bool
	}{
		{"no match", "user:ada", nil, false},
		{"prefix of the actor", "user:crawler-7", nil, true},
		{"attribute with its value", "user:ada", map[string]string{"bot": "true"}, true},
		{"attribute with another value", "user:ada", map[string]string{"bot": "no"}, false},
		{"part of the value, in any case", "user:ada", map[string]string{"agent": "Googlebot/2.1"}, true},
		{"only one of two conditions", "user:t-1", nil, false},
		{"both conditions, the attribute empty", "user:t-1", map[string]string{"test": ""}, true},
	}
	for _, tt := range tests {
		e := &schemas.ActionEvent{Event: schemas.Event{Actor: tt.actor}, Attributes: tt.attributes}
		expect.Equal(t, isBot(rules, e), tt.want, "%s", tt.name)
	}
}

func TestQuality(t *testing.T) {
	rules := []QualityRule{
		{Field: "title", Factor: 2},
		{Field: "link", Factor: 3},
		{Field: "board", Equals: "board:best", Factor: 5},
		{Field: "interests", Factor: 7},
		{Field: "embedding", Factor: 11},
		{Field: "attributes.language", Equals: "en", Factor: 13},
		{Field: "attributes.draft", Factor: 0.5},
	}
	tests := []struct {
		name string
		pin  schemas.PinEvent
		want float64
	}{
		{"nothing matches", schemas.PinEvent{Board: "board:other", Attributes: map[string]string{"language": "de"}}, 1},
		{"title and link", schemas.PinEvent{Title: "t", Link: "l"}, 6},
		{"matching board", schemas.PinEvent{Board: "board:best"}, 5},
		{"lists", schemas.PinEvent{Interests: []schemas.InterestID{"interest:x"}, Embedding: []float32{1}}, 77},
		{"attributes", schemas.PinEvent{Attributes: map[string]string{"language": "en", "draft": "yes"}}, 6.5},
	}
	for _, tt := range tests {
		expect.Equal(t, quality(rules, &tt.pin), tt.want, "%s", tt.name)
	}
}

func TestStepOf(t *testing.T) {
	tests := []struct {
		name     string
		at, want schemas.Micros
	}{
		{"the start of a step", 2 * schemas.ItemStep, 2 * schemas.ItemStep},
		{"the last microsecond", 3*schemas.ItemStep - 1, 2 * schemas.ItemStep},
		{"the epoch", 0, 0},
		{"before it", -1, -schemas.ItemStep},
	}
	for _, tt := range tests {
		expect.Equal(t, stepOf(tt.at), tt.want, "%s", tt.name)
	}
}
