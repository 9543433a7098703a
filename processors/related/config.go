package related

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config is what an installation decides about neighbours. See DefaultConfig.
type Config struct {
	HalfLife  time.Duration `yaml:"half_life"`  // after which having been seen together counts half; 1h-8760h, default 720h (30 days)
	Keep      int           `yaml:"keep"`       // neighbours of a pin or interest that are kept, 1-1000, default 50
	Offer     int           `yaml:"offer"`      // neighbours that an action on a pin brings, 0-Keep, default 10
	BoardPins int           `yaml:"board_pins"` // pins of a board that the next one becomes a neighbour of, 0-100, default 10
	Interests int           `yaml:"interests"`  // of a pin, that become neighbours of one another; the first of them, 0-64, default 6

	// ScoreHalfLife is that of the write-time score, the same in all groups; it is not read from this part of a
	// configuration file.
	ScoreHalfLife time.Duration `yaml:"-"`
}

// DefaultConfig returns the configuration that the field comments state.
func DefaultConfig() Config {
	return Config{
		HalfLife: 30 * 24 * time.Hour, Keep: 50, Offer: 10, BoardPins: 10, Interests: 6, ScoreHalfLife: 24 * time.Hour,
	}
}

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("half_life", c.HalfLife, time.Hour, 8760*time.Hour),
		bounds.Within("keep", c.Keep, 1, 1000),
		bounds.Within("offer", c.Offer, 0, c.Keep),
		bounds.Within("board_pins", c.BoardPins, 0, 100),
		bounds.Within("interests", c.Interests, 0, 64),
	)
}
