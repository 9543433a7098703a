package pools

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rules"
)

// Config holds the caps of the pools. See DefaultConfig.
type Config struct {
	// Cap is the maximum number of visible candidates per user and source, and separately of hidden ones; default 500, 10 to
	// 1,000,000.
	Cap int `yaml:"cap"`
	// Sources is the maximum number of sources per user, including external ones; default 16, 3 to 100.
	Sources int `yaml:"sources"`
	// MaxFollowees is the maximum number of a user's follows that count, 1 to 100,000; 0 means the default, 10,000. The
	// follows with the latest event times are over the cap and deliver nothing until others end. A change takes effect with
	// the user's next follow or unfollow.
	MaxFollowees int `yaml:"max_followees"`
	// SeenCap is the maximum number of seen pins that are remembered per user; default 100,000, 1000 to 1,000,000.
	SeenCap int `yaml:"seen_cap"`
	// Frozen is how many of a user's newest materialized entries a chunk contains; default 200, 100 to 1000.
	Frozen int `yaml:"frozen"`
	// Expiry is the age at which a pin stops being a candidate, at least 1m; default 0: candidates do not expire.
	Expiry time.Duration `yaml:"expiry"`

	// AwayAfter is the time without a visit after which a user is inactive; default 30 days, at least 1s, or 0 for never. It
	// counts by arrival time from the last visit or, without any visit, from the first follow. The followees of an inactive
	// user deliver nothing new until the next visit. If AwayAfter changes to 0, an inactive user stays inactive until the
	// next visit or rebuild. If it changes from 0, the time of an active user counts from the next visit, follow or rebuild.
	AwayAfter time.Duration `yaml:"away_after"`
}

// GeneratorConfig configures the feeds that a Generator composes. See DefaultGeneratorConfig.
type GeneratorConfig struct {
	// Head is how many of the best candidates of each source a chunk considers; default 200, 100 to 1000.
	Head int `yaml:"head"`
	// HalfLife is the time constant τ of write-time scores; see package score. The application copies it from the
	// configuration of the fan-out. 0: unknown.
	HalfLife time.Duration `yaml:"-"`
	// FeedMax is how many materialized entries per user the feed store keeps, at least 10. The application copies it from the
	// configuration of the feed store.
	FeedMax int `yaml:"-"`
	// ReactivationTimeout is how long a chunk for a reactivated user waits for backfills; default 100ms, 0 to 1m. It is
	// limited to three quarters of the time that the visit has left.
	ReactivationTimeout time.Duration `yaml:"reactivation_timeout"`
	// Feeds are the rules by feed name, such as "home" and "plain".
	Feeds rules.Feeds `yaml:"feeds"`

	// Elsewhere is how long after a visit requested a chunk from another process that visit may show the chunk as new. After
	// a partition moved from another process, the generator makes no chunks for this long. Then everything that visits showed
	// as new from chunks of the previous owner is in the topic served. The generator reads the end of that topic and makes
	// the first chunk when the partition has applied it. This requires that the previous owner makes no chunks after the
	// brokers revoked the partition. 0: there is no other process. The application copies it from feed.Config.Longest.
	Elsewhere time.Duration `yaml:"-"`

	// Sources are the external sources that are asked for candidates for each chunk.
	Sources []ExternalSource `yaml:"sources"`
	// Model is the external model that is asked for scores for each chunk.
	Model ExternalModel `yaml:"model"`
}

// DefaultConfig returns the defaults: pools of 500 candidates, 16 sources, 10,000 followees, 100,000 seen pins and 200
// materialized entries per user, no expiry, inactive after 30 days.
func DefaultConfig() Config {
	return Config{Cap: 500, Sources: 16, MaxFollowees: 10_000, SeenCap: 100_000, Frozen: 200, AwayAfter: 30 * 24 * time.Hour}
}

// DefaultGeneratorConfig returns the feeds of rules.Default, without external sources and without a model.
func DefaultGeneratorConfig() GeneratorConfig {
	return GeneratorConfig{
		Head: 200, FeedMax: 2000, ReactivationTimeout: 100 * time.Millisecond, Feeds: rules.Default(),
		Model: ExternalModel{Config: outside.Config{Timeout: 40 * time.Millisecond}, Candidates: 200},
	}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		bounds.Within("cap", c.Cap, 10, 1_000_000),
		bounds.Within("sources", c.Sources, 3, 100),
		bounds.Within("max_followees", c.MaxFollowees, 0, 100_000),
		bounds.Within("seen_cap", c.SeenCap, 1000, 1_000_000),
		bounds.Within("frozen", c.Frozen, 100, 1000),
	}
	if c.Expiry != 0 && c.Expiry < time.Minute {
		errs = append(errs, fmt.Errorf("expiry: %s: want at least 1m, or 0 for none", c.Expiry))
	}
	if c.AwayAfter != 0 && c.AwayAfter < time.Second {
		errs = append(errs, fmt.Errorf("away_after: %s: want at least 1s, or 0 for never", c.AwayAfter))
	}
	return errors.Join(errs...)
}

// Validate reports every field that is out of its bounds.
func (c GeneratorConfig) Validate() error {
	errs := []error{
		bounds.Within("head", c.Head, 100, 1000),
		bounds.Within("feed_max", c.FeedMax, 10, 1_000_000_000),
		bounds.Within("reactivation_timeout", c.ReactivationTimeout, 0, time.Minute),
	}
	return errors.Join(append(append(errs, c.Feeds.Validate()), c.externalProblems()...)...)
}
