package interests

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config holds the settings for interests. See DefaultConfig.
type Config struct {
	MaxTerms  int               `yaml:"max_terms"`  // counted terms of a partition, 10-1,000,000, default 5,000
	MaxPeople int               `yaml:"max_people"` // counted authors of a term, 1-1000, default 30
	MinPins   int               `yaml:"min_pins"`   // minimum pins of a candidate, 1-1,000,000, default 5
	MinPeople int               `yaml:"min_people"` // minimum authors of a candidate, 1-MaxPeople, default 3
	Stop      []string          `yaml:"stop"`       // stop words, in addition to the common ones: no term begins or ends with one
	Block     map[string]string `yaml:"block"`      // terms that are never counted and have no interest, each with the reason

	// HalfLife is the half-life of the strength of a user's interests and of recent pins; 1h-8760h, default 720h (30 days).
	HalfLife time.Duration `yaml:"half_life"`
	Keep     int           `yaml:"keep"`     // interests that a user keeps, 1-1000, default 50
	Evidence int           `yaml:"evidence"` // actions that are kept per interest, 0-100, default 5

	Interests int `yaml:"interests"` // interests of a pin that count, 1-64, default 6
	// AttributionWindow is how long after an impression an action counts for its source; 1m-720h, default 168h.
	AttributionWindow time.Duration `yaml:"attribution_window"`
	// MaxSeen is the number of users of a pin that are stored for AttributionWindow, 0-40,000, default 10,000.
	MaxSeen int `yaml:"max_seen"`
	Days    int `yaml:"days"` // days of engagement that are kept, 1-400, default 28
}

// DefaultConfig returns the defaults that the field comments state.
func DefaultConfig() Config {
	return Config{
		MaxTerms: 5000, MaxPeople: 30, MinPins: 5, MinPeople: 3, Stop: []string{}, Block: map[string]string{},
		HalfLife: 30 * 24 * time.Hour, Keep: 50, Evidence: 5,
		Interests: 6, AttributionWindow: 7 * 24 * time.Hour, MaxSeen: 10_000, Days: 28,
	}
}

// Blocked returns a function that explains why a folded term is not counted and has no interest, whatever was counted and
// decided before. It returns the reason in Block, or the stop word that the term begins or ends with. It returns "" for a
// term that is not blocked.
func (c Config) Blocked() func(term string) (reason string) { return newVocabulary(c).why }

// Validate returns an error that lists every value that is out of its bounds.
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
