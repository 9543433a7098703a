package fanout

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config holds the settings of the fan-out. See DefaultConfig.
type Config struct {
	// Stored scores keep the previous half-life until `smartfeed replay`. See package score. The default is
	// score.DefaultHalfLife.
	HalfLife time.Duration `yaml:"half_life" default:"16h38m8s" range:"1m..8760h" help:"age at which a pin needs twice the quality or edge weight for the same write-time score"`
	// A delivery must stay below 1 MiB. More followers per step delay the deliveries of other followees; fewer make the walk
	// slower.
	StepEdges   int           `yaml:"step_edges" default:"2000" range:"1..3000" help:"followers per step of a delivery"`
	StepTimeout time.Duration `yaml:"step_timeout" default:"1m" range:"1s..1h" help:"how long a delivery waits for the pools to apply a step before it continues"`
	Recents     int           `yaml:"recents" default:"1000" range:"1..10000" help:"publications that a followee keeps, and deliveries that it queues; use twice the cap of a pool"`
	// Later follows within the interval get one backfill together, at its end.
	BackfillInterval time.Duration `yaml:"backfill_interval" default:"1m" range:"1s..24h" help:"interval in which a follower who unfollows and follows again gets at most 5 immediate backfills"`

	// A pulled followee is pushed again at 10 % below. A change takes effect with the followee's next event. A pulled followee
	// takes up to 800 KB of memory in each process that reads pools: 2·Recents pins of about 400 bytes. A higher value makes
	// a publication slower: a delivery takes about 10 ms per step.
	PullAbove int `yaml:"pull_above" default:"10000" range:"0..1000000000" help:"followers above which readers pull a followee's pins instead of receiving them"`
}

// DefaultConfig returns the defaults of the tags.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate returns an error that lists every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }
