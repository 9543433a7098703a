package fanout

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config holds the settings of the fan-out. See DefaultConfig.
type Config struct {
	// Stored scores keep the previous half-life until `smartfeed replay`. See package score. The default is
	// score.DefaultHalfLife.
	ScoreHalfLife time.Duration `yaml:"score_half_life" default:"16h38m8s" range:"1m..8760h" help:"extra age at which a pin needs twice the quality or edge weight for the same write-time score"`
	// A delivery must stay below 1 MiB. More followers per step delay the deliveries of other followees; fewer make the
	// walk slower.
	StepFollowers         int           `yaml:"step_followers" default:"2000" range:"1..3000" help:"followers per step of a delivery"`
	StepTimeout           time.Duration `yaml:"step_timeout" default:"1m" range:"1s..1h" help:"maximum time that a delivery waits for the pools to apply a step"`
	MaxRecentPublications int           `yaml:"max_recent_publications" default:"1000" range:"1..10000" help:"publications stored and deliveries queued per followee; use twice pools.max_candidates"`
	// Later follows within the interval get one backfill together, at its end.
	BackfillInterval time.Duration `yaml:"backfill_interval" default:"1m" range:"1s..24h" help:"interval in which a follower who unfollows and follows again gets at most 5 immediate backfills"`

	// A pulled followee is pushed again at 10 % below. A change takes effect with the followee's next event. A pulled
	// followee takes up to 800 KB of memory in each process that reads pools: 2·MaxRecentPublications pins of about 400 bytes. A
	// higher value makes a publication slower: a delivery takes about 10 ms per step.
	PullThreshold int `yaml:"pull_threshold" default:"10000" range:"0..1000000000" help:"number of followers above which readers pull a followee's pins instead of receiving them"`
}

// DefaultConfig returns the defaults of the tags.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate returns an error that lists every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }
