package fanout

import (
	"errors"
	"fmt"
	"time"
)

// Config are the rules of the fan-out. See DefaultConfig.
type Config struct {
	HalfLife  time.Duration `yaml:"half_life"`  // of the write-time score, see package score; 1m to 8760h. Stored scores keep the old one until `smartfeed replay`
	StepEdges int           `yaml:"step_edges"` // followers a step serves, 1 to 3000: a delivery must stay below 1 MiB. With more of them others wait, with fewer the walk does
	Recents   int           `yaml:"recents"`    // publications a followee keeps, 1 to 10000; twice the cap of a pool

	// PullAbove is the number of followers above which a followee's pins are pulled by who reads, and not pushed; 0 to
	// 1000000000. It is pushed again a tenth below. A change takes effect with the followee's next event.
	PullAbove int `yaml:"pull_above"`
	// SpreadAbove is the number of followers above which a followee's edges are spread over all partitions, for good; 0
	// to 1000000000.
	SpreadAbove int `yaml:"spread_above"`
}

// DefaultConfig: a half-life of a day, steps of 2000 followers, 1000 recents; spread above 10,000 followers, pulled above
// 100,000.
func DefaultConfig() Config {
	return Config{HalfLife: 24 * time.Hour, StepEdges: 2000, Recents: 1000, PullAbove: 100_000, SpreadAbove: 10_000}
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
	for _, f := range []struct {
		name string
		n    int
	}{{"pull_above", c.PullAbove}, {"spread_above", c.SpreadAbove}} {
		if f.n < 0 || f.n > 1_000_000_000 {
			errs = append(errs, fmt.Errorf("%s %d: from 0 to 1000000000", f.name, f.n))
		}
	}
	return errors.Join(errs...)
}
