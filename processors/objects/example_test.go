package objects_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/objects"
)

// Config that ranks pins with a link higher and memes lower, and drops the actions of crawlers. Validate reports an
// incomplete rule and a rule over an unknown field.
func ExampleConfig() {
	cfg := objects.DefaultConfig()
	cfg.QualityRules = []objects.QualityRule{
		{Field: "link", Factor: 1.5},
		{Field: "attributes.kind", Equals: "meme", Factor: 0.5},
	}
	cfg.BotRules = append(cfg.BotRules, objects.BotRule{ActorPrefix: "user:crawler-"})
	fmt.Println(cfg.Validate())

	cfg.QualityRules = append(cfg.QualityRules, objects.QualityRule{Field: "author", Factor: 2})
	cfg.BotRules = append(cfg.BotRules, objects.BotRule{Contains: "bot"})
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// bot_rules[2]: equals or contains without attribute: want an attribute
	// quality_rules[2].field: "author": want title, link, board, interests, embedding or attributes.NAME
}
