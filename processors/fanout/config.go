package fanout

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config are the rules of the fan-out. See DefaultConfig.
type Config struct {
	HalfLife  time.Duration `yaml:"half_life"`  // of the write-time score, see package score; 1m to 8760h. Stored scores keep the old one until `smartfeed replay`
	StepEdges int           `yaml:"step_edges"` // followers a step serves, 1 to 3000: a delivery must stay below 1 MiB. With more of them others wait, with fewer the walk does
	// StepTimeout is how long a walk waits for the pools to apply a step before it takes the next one, 1s to 1h.
	StepTimeout time.Duration `yaml:"step_timeout"`
	Recents     int           `yaml:"recents"` // publications a followee keeps, and walks that wait for its turn, 1 to 10000; twice the cap of a pool
	// BackfillInterval is the time in which a follower who unfollows and follows again gets at most 5 immediate backfills,
	// 1s to 24h. Further follows within it get one backfill together, when it has passed.
	BackfillInterval time.Duration `yaml:"backfill_interval"`

	// PullAbove is the number of followers above which a followee's pins are pulled by who reads, and not pushed; 0 to
	// 1000000000. It is pushed again a tenth below. A change takes effect with the followee's next event.
	PullAbove int `yaml:"pull_above"`
	// SpreadAbove is the number of followers above which a followee's edges are spread over all partitions, for good; 0
	// to 1000000000.
	SpreadAbove int `yaml:"spread_above"`
}

// DefaultConfig: a half-life of a day, steps of 2000 followers, 1000 recents; spread above 10,000 followers, pulled above
// 100,000; a minute for the timeout of a step and for the interval of backfills.
func DefaultConfig() Config {
	return Config{
		HalfLife: 24 * time.Hour, StepEdges: 2000, StepTimeout: time.Minute, Recents: 1000, BackfillInterval: time.Minute,
		PullAbove: 100_000, SpreadAbove: 10_000,
	}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("half_life", c.HalfLife, time.Minute, 8760*time.Hour),
		bounds.Within("step_edges", c.StepEdges, 1, 3000),
		bounds.Within("step_timeout", c.StepTimeout, time.Second, time.Hour),
		bounds.Within("recents", c.Recents, 1, 10_000),
		bounds.Within("backfill_interval", c.BackfillInterval, time.Second, 24*time.Hour),
		bounds.Within("pull_above", c.PullAbove, 0, 1_000_000_000),
		bounds.Within("spread_above", c.SpreadAbove, 0, 1_000_000_000),
	)
}
