package objects

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestConfig_Validate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // parts of the error, one per problem
	}{
		{"no verbs", func(c *Config) { c.Verbs = nil }, []string{"verbs: none"}},
		{"a verb with a reserved name", func(c *Config) { c.Verbs = schemas.Verbs{schemas.ImpressionCount: 1} },
			[]string{`verb "impression"`}},
		{"bots", func(c *Config) { c.BotRules = []BotRule{{}, {Contains: "x"}} },
			[]string{"bot_rules[0]: no condition", "bot_rules[1]: equals or contains without attribute"}},
		{"too many bots", func(c *Config) { c.BotRules = make([]BotRule, 101) }, []string{"bot_rules: length: 101"}},
		{"quality", func(c *Config) {
			c.QualityRules = []QualityRule{{Field: "price", Factor: 1}, {Field: "title"}, {Field: "interests", Equals: "x", Factor: 1},
				{Field: "attributes.", Factor: 1}, {Field: "attributes.a", Factor: 2}}
		}, []string{`quality_rules[0].field: "price"`, "quality_rules[1].factor: 0", "quality_rules[2].equals", `quality_rules[3].field: "attributes."`}},
	}
	for _, tt := range tests {
		cfg := DefaultConfig()
		must.OK(t, cfg.Validate())
		tt.change(&cfg)
		for _, part := range tt.want {
			expect.Error(t, cfg.Validate(), part, "%s", tt.name)
		}
	}
}
