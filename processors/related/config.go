package related

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config holds the settings for neighbors. See DefaultConfig.
type Config struct {
	// HalfLife is the half-life of an occurrence's weight in a neighbor's strength; 1h-8760h, default 720h (30 days).
	HalfLife  time.Duration `yaml:"half_life"`
	Keep      int           `yaml:"keep"`       // neighbors that a pin or interest keeps, 1-1000, default 50
	Offer     int           `yaml:"offer"`      // neighbors that an action on a pin delivers, 0-Keep, default 10
	BoardPins int           `yaml:"board_pins"` // last pins of a board that the next one is paired with, 0-100, default 10
	Interests int           `yaml:"interests"`  // first interests of a pin, which are paired with one another, 0-64, default 6

	// ScoreHalfLife is the time constant of the write-time score. All groups share it, so it is not read from this part of
	// a configuration file.
	ScoreHalfLife time.Duration `yaml:"-"`
}

// DefaultConfig returns the defaults that the field comments state.
func DefaultConfig() Config {
	return Config{
		HalfLife: 30 * 24 * time.Hour, Keep: 50, Offer: 10, BoardPins: 10, Interests: 6, ScoreHalfLife: 24 * time.Hour,
	}
}

// Validate returns an error that lists every value that is out of its bounds.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("half_life", c.HalfLife, time.Hour, 8760*time.Hour),
		bounds.Within("keep", c.Keep, 1, 1000),
		bounds.Within("offer", c.Offer, 0, c.Keep),
		bounds.Within("board_pins", c.BoardPins, 0, 100),
		bounds.Within("interests", c.Interests, 0, 64),
	)
}
