package objects

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config is what an installation decides about pins and actions. See DefaultConfig.
type Config struct {
	// Verbs are the known verbs of actions; an action with another one is a bad record. One set serves the whole
	// program, so it is not read from this group's part of a configuration file. Default schemas.DefaultVerbs.
	Verbs schemas.Verbs `yaml:"-"`

	// Bots says whose actions are dropped: those that match any rule. At most 100; default: attribute bot is true.
	Bots []BotRule `yaml:"bots"`

	// Quality is a factor for each rule that a pin's earliest create matches; 1 without any. At most 20 rules.
	// Default none.
	Quality []QualityRule `yaml:"quality"`

	Hot Hot `yaml:"hot"` // which pins' counts the content generator knows

	Remember time.Duration `yaml:"remember"`  // how long after its arrival an action's repeat is known; 1m-720h, default 96h
	CountFor time.Duration `yaml:"count_for"` // how long the counts of a step are kept; 1h-720h, default 96h, the longest window of a feature
	// ActorsHalfLife is after which time somebody who acted counts half in the mean embedding of a pin's recent actors;
	// 1m-720h, default 24h.
	ActorsHalfLife time.Duration `yaml:"actors_half_life"`

	Hold         time.Duration `yaml:"hold"`          // how long an action waits for its pin; 0-1h, default 60s
	MaxHeld      int           `yaml:"max_held"`      // actions that wait for one pin; the next goes on without it; 0-1000, default 100
	Versions     int           `yaml:"versions"`      // versions of a pin's attributes kept for joins; 1-64, default 8
	MaxFollowees int           `yaml:"max_followees"` // present and former followees of a pin that are told of changes; 128-500, default 256
}

// BotRule matches actions of programs. All conditions that are set must hold; at least one must be set.
type BotRule struct {
	ActorPrefix string `yaml:"actor_prefix"` // the actor's id starts so, kind included: "user:crawler-"
	Attribute   string `yaml:"attribute"`    // the action has this attribute,
	Equals      string `yaml:"equals"`       // with this value; "": any
	Contains    string `yaml:"contains"`     // with this in its value, upper or lower case; "": any
}

// QualityRule gives pins with some property a factor of quality. The factor moves a pin up or down by ln(factor)
// half-lives of the write-time score.
type QualityRule struct {
	Field  string  `yaml:"field"`  // title, link, board, interests, embedding or attributes.NAME
	Equals string  `yaml:"equals"` // the field's text; "": the field is not empty. Only for title, link, board, attributes
	Factor float64 `yaml:"factor"` // 0.01-100
}

// DefaultConfig returns the configuration that the field comments state.
func DefaultConfig() Config {
	return Config{
		Verbs:    schemas.DefaultVerbs(),
		Bots:     []BotRule{{Attribute: "bot", Equals: "true"}},
		Hot:      Hot{From: 5, For: 30 * 24 * time.Hour},
		Remember: 96 * time.Hour,
		CountFor: 96 * time.Hour,

		ActorsHalfLife: 24 * time.Hour,

		Hold:         time.Minute,
		MaxHeld:      100,
		Versions:     8,
		MaxFollowees: 256,
	}
}

// unknownFor is how long heat and the mean of actors of an id without a pin are kept after the last record: an hour longer than
// counts and repeats of actions, which is when nothing else is known of the id.
func (c Config) unknownFor() time.Duration { return max(c.Remember, c.CountFor) + time.Hour }

const (
	maxBotRules     = 100
	maxQualityRules = 20
	minFactor       = 0.01
	maxFactor       = 100
)

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		c.Verbs.Validate(),
		c.Hot.validate(),
		bounds.Within("remember", c.Remember, time.Minute, 720*time.Hour),
		bounds.Within("count_for", c.CountFor, time.Hour, 720*time.Hour),
		bounds.Within("actors_half_life", c.ActorsHalfLife, time.Minute, 720*time.Hour),
		bounds.Within("hold", c.Hold, 0, time.Hour),
		bounds.Within("max_held", c.MaxHeld, 0, 1000),
		bounds.Within("versions", c.Versions, 1, 64),
		bounds.Within("max_followees", c.MaxFollowees, 128, 500),
		bounds.Within("bots: number of rules", len(c.Bots), 0, maxBotRules),
		bounds.Within("quality: number of rules", len(c.Quality), 0, maxQualityRules),
	}
	if len(c.Verbs) == 0 {
		errs = append(errs, errors.New("verbs: none; without any no action is accepted"))
	}
	for i, r := range c.Bots {
		errs = append(errs, r.validate(fmt.Sprintf("bots[%d]", i)))
	}
	for i, r := range c.Quality {
		errs = append(errs, r.validate(fmt.Sprintf("quality[%d]", i)))
	}
	return errors.Join(errs...)
}

func (r BotRule) validate(name string) error {
	switch {
	case r == (BotRule{}):
		return fmt.Errorf("%s: no condition; it would match everybody", name)
	case r.Attribute == "" && (r.Equals != "" || r.Contains != ""):
		return fmt.Errorf("%s: equals or contains without an attribute", name)
	}
	return nil
}

func (r QualityRule) validate(name string) error {
	err := bounds.Within(name+".factor", r.Factor, minFactor, maxFactor)
	attribute, isAttribute := strings.CutPrefix(r.Field, attributePrefix)
	switch {
	case isAttribute && attribute != "":
	case r.Field == "title", r.Field == "link", r.Field == "board":
	case r.Field == "interests", r.Field == "embedding":
		if r.Equals != "" {
			err = errors.Join(err, fmt.Errorf("%s.equals: %s has no text to compare", name, r.Field))
		}
	default:
		err = errors.Join(err, fmt.Errorf("%s.field: %q, must be title, link, board, interests, embedding or attributes.NAME", name, r.Field))
	}
	return err
}
