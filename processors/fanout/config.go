package fanout

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config holds the settings of the fan-out. See DefaultConfig.
type Config struct {
	// HalfLife is the time constant of the write-time score, 1m to 8760h; see package score. Stored scores keep the
	// previous value until `smartfeed replay`.
	HalfLife time.Duration `yaml:"half_life"`
	// StepEdges is the number of followers per step, 1 to 3000: a delivery must stay below 1 MiB. A higher value delays the
	// deliveries of other followees; a lower value makes the walk slower.
	StepEdges int `yaml:"step_edges"`
	// StepTimeout is how long a walk waits for the pools to apply a step before it continues, 1s to 1h.
	StepTimeout time.Duration `yaml:"step_timeout"`
	// Recents is the number of publications that a followee keeps, and the number of walks that it queues, 1 to 10000. Use
	// twice the cap of a pool.
	Recents int `yaml:"recents"`
	// BackfillInterval is the interval in which a follower who unfollows and follows again gets at most 5 immediate
	// backfills, 1s to 24h. Later follows within the interval get one backfill together, at its end.
	BackfillInterval time.Duration `yaml:"backfill_interval"`

	// PullAbove is the number of followers above which a followee is pulled by readers instead of pushed, 0 to 1000000000.
	// A pulled followee is pushed again at 10 % below. A change takes effect with the followee's next event. A pulled followee
	// takes up to 800 KB of memory in each process that reads pools: 2·Recents pins of about 400 bytes. A higher value makes
	// a publication slower: a walk takes about 10 ms per step.
	PullAbove int `yaml:"pull_above"`
}

// DefaultConfig returns the defaults: a time constant of 24 hours, steps of 2000 followers, 1000 recents, pull above
// 10,000 followers, and one minute for both StepTimeout and BackfillInterval.
func DefaultConfig() Config {
	return Config{
		HalfLife: 24 * time.Hour, StepEdges: 2000, StepTimeout: time.Minute, Recents: 1000, BackfillInterval: time.Minute,
		PullAbove: 10_000,
	}
}

// Validate returns an error that lists every field that is out of bounds.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("half_life", c.HalfLife, time.Minute, 8760*time.Hour),
		bounds.Within("step_edges", c.StepEdges, 1, 3000),
		bounds.Within("step_timeout", c.StepTimeout, time.Second, time.Hour),
		bounds.Within("recents", c.Recents, 1, 10_000),
		bounds.Within("backfill_interval", c.BackfillInterval, time.Second, 24*time.Hour),
		bounds.Within("pull_above", c.PullAbove, 0, 1_000_000_000),
	)
}
