package objects_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/objects"
)

// Pins with a link stand higher and memes lower; what crawlers do counts for nothing. A rule that says too little is a
// mistake, and so is one about what is no property of a pin.
func ExampleConfig() {
	cfg := objects.DefaultConfig()
	cfg.Quality = []objects.QualityRule{
		{Field: "link", Factor: 1.5},
		{Field: "attributes.kind", Equals: "meme", Factor: 0.5},
	}
	cfg.Bots = append(cfg.Bots, objects.BotRule{ActorPrefix: "user:crawler-"})
	fmt.Println(cfg.Validate())

	cfg.Quality = append(cfg.Quality, objects.QualityRule{Field: "author", Factor: 2})
	cfg.Bots = append(cfg.Bots, objects.BotRule{Contains: "bot"})
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// bots[2]: equals or contains without an attribute
	// quality[2].field: "author", must be title, link, board, interests, embedding or attributes.NAME
}
