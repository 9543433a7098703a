package objects

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config holds the settings for pins and actions. See DefaultConfig.
type Config struct {
	// Verbs are the known verbs of actions. An action with another verb is a bad record. All groups share one set, so this
	// group's part of a configuration file does not contain it. Default schemas.DefaultVerbs.
	Verbs schemas.Verbs `yaml:"-"`
	// CurrentVerbs returns the verbs if they can change while the group runs; nil: always Verbs.
	CurrentVerbs func() schemas.Verbs `yaml:"-"`

	// Bots are rules that identify bots. An action that matches any rule is dropped. At most 100; default: attribute bot is
	// true.
	BotRules []BotRule `yaml:"bot_rules" help:"rules that identify bots, at most 100; an action that matches a rule is dropped"`

	// Quality are rules over a pin's earliest create. A pin's quality is the product of the factors of the rules that
	// match, or 1 if none does. At most 20; default none.
	QualityRules []QualityRule `yaml:"quality_rules" help:"rules whose factors multiply to the quality of a pin, at most 20; none: quality 1"`

	Hot     Hot     `yaml:"hot"`     // pins whose counts the content generator has
	Popular Popular `yaml:"popular"` // candidates of the source popular

	DedupWindow            time.Duration `yaml:"dedup_window" default:"96h" range:"1m..720h" help:"time after an action in which its duplicates are recognized"`
	CountRetention         time.Duration `yaml:"count_retention" default:"96h" range:"1h..720h" help:"retention of counts; the longest window of a feature"`
	ActorEmbeddingHalfLife time.Duration `yaml:"actor_embedding_half_life" default:"24h" range:"1m..720h" help:"half-life of an actor's weight in the mean embedding of a pin's recent actors"`

	JoinTimeout       time.Duration `yaml:"join_timeout" default:"1m" range:"0s..1h" help:"maximum time that an action waits for its pin"`
	MaxWaitingActions int           `yaml:"max_waiting_actions" default:"100" range:"0..1000" help:"maximum number of actions that wait for one pin; further actions are forwarded without its attributes"`
	MaxVersions       int           `yaml:"max_versions" default:"8" range:"1..64" help:"number of versions of a pin's attributes stored for joins"`
	MaxFollowees      int           `yaml:"max_followees" default:"256" range:"128..500" help:"maximum number of current and former followees of a pin that are notified of changes"`
}

// BotRule matches actions of programs. All conditions that are set must match; at least one must be set.
type BotRule struct {
	ActorPrefix string `yaml:"actor_prefix" help:"prefix of the actor's id, including the kind, such as user:crawler-; empty: any actor"`
	Attribute   string `yaml:"attribute" help:"attribute that the action has; empty: no condition"`
	Equals      string `yaml:"equals" help:"value of the attribute; empty: any value"`
	Contains    string `yaml:"contains" help:"text that the value contains, ignoring case; empty: any text"`
}

// QualityRule multiplies the quality of matching pins by a factor. The factor moves a pin up or down by ln(factor) time
// constants of the write-time score.
type QualityRule struct {
	Field  string  `yaml:"field" help:"title, link, board, interests, embedding or attributes.NAME"`
	Equals string  `yaml:"equals" help:"text of the field, only for title, link, board and attributes; empty: the field is not empty"`
	Factor float64 `yaml:"factor" range:"0.01..100" help:"factor of the quality of a pin that matches"`
}

// DefaultConfig returns the defaults of the tags and those that the comments of other fields state.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Verbs = schemas.DefaultVerbs()
	c.BotRules = []BotRule{{Attribute: "bot", Equals: "true"}}
	return c
}

// unknownFor returns how long the exposure and the mean of actors of an id without a pin are kept after the last
// record. It is one hour longer than counts and remembered actions.
func (c Config) unknownFor() time.Duration { return max(c.DedupWindow, c.CountRetention) + time.Hour }

const (
	maxBotRules     = 100
	maxQualityRules = 20
)

// Validate returns an error that lists every value that is out of its bounds.
func (c Config) Validate() error {
	problems := settings.Problems{
		c.Verbs.Validate(),
		settings.Under("hot", settings.Validate(c.Hot)),
		settings.Under("popular", settings.Validate(c.Popular)),
		settings.Validate(c),
		settings.Within("bot_rules: length", len(c.BotRules), 0, maxBotRules),
		settings.Within("quality_rules: length", len(c.QualityRules), 0, maxQualityRules),
	}
	problems.Want(len(c.Verbs) > 0, "verbs: none: want at least one")
	for i, r := range c.BotRules {
		problems.Add(r.validate(fmt.Sprintf("bot_rules[%d]", i)))
	}
	for i, r := range c.QualityRules {
		problems.Add(r.validate(fmt.Sprintf("quality_rules[%d]", i)))
	}
	return problems.Err()
}

func (r BotRule) validate(name string) error {
	switch {
	case r == (BotRule{}):
		return fmt.Errorf("%s: no condition: want actor_prefix or attribute", name)
	case r.Attribute == "" && (r.Equals != "" || r.Contains != ""):
		return fmt.Errorf("%s: equals or contains without attribute: want an attribute", name)
	}
	return nil
}

func (r QualityRule) validate(name string) error {
	err := settings.Under(name, settings.Validate(r))
	attribute, isAttribute := strings.CutPrefix(r.Field, attributePrefix)
	switch {
	case isAttribute && attribute != "":
	case r.Field == "title", r.Field == "link", r.Field == "board":
	case r.Field == "interests", r.Field == "embedding":
		if r.Equals != "" {
			err = errors.Join(err, fmt.Errorf("%s.equals: want none, because %s has no text to compare", name, r.Field))
		}
	default:
		err = errors.Join(err, fmt.Errorf("%s.field: %q: want title, link, board, interests, embedding or attributes.NAME", name, r.Field))
	}
	return err
}
