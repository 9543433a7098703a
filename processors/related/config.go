package related

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/score"
)

// Config holds the settings for neighbors. See DefaultConfig.
type Config struct {
	MaxNeighbors       int `yaml:"max_neighbors" default:"50" range:"1..1000" help:"maximum number of neighbors stored per pin or interest"`
	DeliveredNeighbors int `yaml:"delivered_neighbors" default:"10" range:"0..max_neighbors" help:"number of strongest neighbors delivered for an action on a pin"`
	PairedBoardPins    int `yaml:"paired_board_pins" default:"10" range:"0..100" help:"number of newest pins of a board that the next pin is paired with"`
	PairedInterests    int `yaml:"paired_interests" default:"6" range:"0..64" help:"number of first interests of a pin that are paired with one another"`

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
