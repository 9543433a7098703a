package fanout

import (
	"errors"
	"fmt"
	"time"
)

// Config are the rules of the fan-out. See DefaultConfig.
type Config struct {
	HalfLife  time.Duration `yaml:"half_life"`  // of the write-time score, see package score; 1m to 8760h. Stored scores keep the old one
	StepEdges int           `yaml:"step_edges"` // followers a step serves, 1 to 3000: a delivery must stay below 1 MiB
	Recents   int           `yaml:"recents"`    // publications a followee keeps, 1 to 10000; twice the cap of a pool
}

// DefaultConfig: a half-life of a day, steps of 1000 followers, 1000 recents.
func DefaultConfig() Config {
	return Config{HalfLife: 24 * time.Hour, StepEdges: 1000, Recents: 1000}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	var errs []error
	if c.HalfLife < time.Minute || c.HalfLife > 365*24*time.Hour {
		errs = append(errs, fmt.Errorf("half_life %s: from 1m to 8760h", c.HalfLife))
	}
	if c.StepEdges < 1 || c.StepEdges > 3000 {
		errs = append(errs, fmt.Errorf("step_edges %d: from 1 to 3000", c.StepEdges))
	}
	if c.Recents < 1 || c.Recents > 10000 {
		errs = append(errs, fmt.Errorf("recents %d: from 1 to 10000", c.Recents))
	}
	return errors.Join(errs...)
}
