package interests

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config is what an installation decides about interests. See DefaultConfig.
type Config struct {
	MaxTerms  int               `yaml:"max_terms"`  // of a partition that are counted, 10-1,000,000, default 5,000
	MaxPeople int               `yaml:"max_people"` // authors of a term that are told apart, 1-1000, default 30
	MinPins   int               `yaml:"min_pins"`   // of a candidate, 1-1,000,000, default 5
	MinPeople int               `yaml:"min_people"` // authors of a candidate, 1-MaxPeople, default 3
	Stop      []string          `yaml:"stop"`       // words that stand at no end of a term, beside the common ones
	Block     map[string]string `yaml:"block"`      // terms that are never counted and mean nothing, each with the reason

	HalfLife time.Duration `yaml:"half_life"` // of what a user's actions give, and of recent pins; 1h-8760h, default 720h (30 days)
	Keep     int           `yaml:"keep"`      // interests of a user, 1-1000, default 50
	Evidence int           `yaml:"evidence"`  // actions that are kept of each, 0-100, default 5

	Interests         int           `yaml:"interests"`          // of a pin that count, 1-64, default 6
	AttributionWindow time.Duration `yaml:"attribution_window"` // after an impression, in which an action counts for its source; 1m-720h, default 168h
	MaxSeen           int           `yaml:"max_seen"`           // users of a pin that are remembered so long, 0-40,000, default 10,000
	Days              int           `yaml:"days"`               // of engagement that are kept, 1-400, default 28
}

// DefaultConfig returns the configuration that the field comments state.
func DefaultConfig() Config {
	return Config{
		MaxTerms: 5000, MaxPeople: 30, MinPins: 5, MinPeople: 3, Stop: []string{}, Block: map[string]string{},
		HalfLife: 30 * 24 * time.Hour, Keep: 50, Evidence: 5,
		Interests: 6, AttributionWindow: 7 * 24 * time.Hour, MaxSeen: 10_000, Days: 28,
	}
}

// Blocked returns what says of a folded term why it is not counted and means no interest, whatever was counted and decided
// before: the reason in Block, or which stop word it begins or ends with; "": it may mean one.
func (c Config) Blocked() func(term string) (reason string) { return newVocabulary(c).why }

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("max_terms", c.MaxTerms, 10, 1_000_000),
		bounds.Within("max_people", c.MaxPeople, 1, 1000),
		bounds.Within("min_pins", c.MinPins, 1, 1_000_000),
		bounds.Within("min_people", c.MinPeople, 1, c.MaxPeople),
		bounds.Within("half_life", c.HalfLife, time.Hour, 8760*time.Hour),
		bounds.Within("keep", c.Keep, 1, 1000),
		bounds.Within("evidence", c.Evidence, 0, 100),
		bounds.Within("interests", c.Interests, 1, 64),
		bounds.Within("attribution_window", c.AttributionWindow, time.Minute, 720*time.Hour),
		bounds.Within("max_seen", c.MaxSeen, 0, 40_000),
		bounds.Within("days", c.Days, 1, 400),
	}
	for term, reason := range c.Block {
		if reason == "" || Fold(term) == "" {
			problems = append(problems, fmt.Errorf("block: %q: %q, must be a term with a reason", term, reason))
		}
	}
	return errors.Join(problems...)
}
