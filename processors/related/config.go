package related

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/score"
)

// Config holds the settings for neighbors. See DefaultConfig.
type Config struct {
	HalfLife  time.Duration `yaml:"half_life" default:"720h" range:"1h..8760h" help:"half-life of an occurrence's weight in a neighbor's strength"`
	Keep      int           `yaml:"keep" default:"50" range:"1..1000" help:"neighbors kept per pin or interest"`
	Offer     int           `yaml:"offer" default:"10" range:"0..keep" help:"neighbors that an action on a pin delivers"`
	BoardPins int           `yaml:"board_pins" default:"10" range:"0..100" help:"last pins of a board that the next one is paired with"`
	Interests int           `yaml:"interests" default:"6" range:"0..64" help:"first interests of a pin, which are paired with one another"`

	// ScoreHalfLife is the half-life of the write-time score. All groups share it, so this part of a configuration file does
	// not contain it.
	ScoreHalfLife time.Duration `yaml:"-"`
}

// DefaultConfig returns the defaults of the tags, and score.DefaultHalfLife.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.ScoreHalfLife = score.DefaultHalfLife
	return c
}

// Validate returns an error that lists every value that is out of its bounds.
func (c Config) Validate() error { return settings.Validate(c) }
