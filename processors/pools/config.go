package pools

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rules"
)

// Config are the caps of the pools. See DefaultConfig.
type Config struct {
	// Cap is how many candidates a user has of a source, and how many hidden ones; default 500, 10 to 1,000,000.
	Cap int `yaml:"cap"`
	// Sources is how many a user has, offered ones included; default 16, 3 to 100.
	Sources int `yaml:"sources"`
	// MaxFollowees is how many follows of a user count, 1 to 100,000; 0 is the default, 10,000. Those with the latest event
	// times are over the cap and deliver nothing until others end. A change takes effect with the user's next follow or
	// unfollow.
	MaxFollowees int `yaml:"max_followees"`
	// SeenCap is how many pins are remembered as seen by a user, default 100,000, 1000 to 1,000,000.
	SeenCap int `yaml:"seen_cap"`
	// Frozen is how many of a user's newest frozen entries a chunk carries, default 200, 100 to 1000.
	Frozen int `yaml:"frozen"`
	// Expiry is the age at which a pin is no candidate any more, at least 1 m; default 0: none.
	Expiry time.Duration `yaml:"expiry"`

	// AwayAfter is how long after a visit, by arrival time, or, without any visit, after the first follow, a user is away:
	// the followees deliver nothing new until the next visit; default 30 days, at least 1 s, or 0 for never. Whoever is away when
	// it becomes 0 is until the next visit or rebuild; whoever is here when it no longer is 0 may go away AwayAfter from the
	// next visit, follow or rebuild on.
	AwayAfter time.Duration `yaml:"away_after"`
}

// GeneratorConfig are the feeds that are made of the pools. See DefaultGeneratorConfig.
type GeneratorConfig struct {
	// Head is how many of the best candidates of each source a chunk is made of, default 200, 100 to 1000.
	Head int `yaml:"head"`
	// HalfLife is that of write-time scores, see package score; the fan-out's own is handed here. 0: not known.
	HalfLife time.Duration `yaml:"-"`
	// FeedMax is how many frozen entries of a user the feed store keeps, at least 10; its own setting is handed here.
	FeedMax int `yaml:"-"`
	// ReactivationTimeout is how long a chunk for one who was away waits for what the followees bring, and never more than three quarters of
	// what a visit has left; default 100 ms, 0 to 1 m.
	ReactivationTimeout time.Duration `yaml:"reactivation_timeout"`
	// Feeds are the rules by name: "home", "plain" …
	Feeds rules.Feeds `yaml:"feeds"`

	// Elsewhere is how long after a visit has asked another process for a chunk it may still show the chunk as new. A partition
	// that may have been in another process before has no chunks for so long: then all that is shown as new on chunks of the
	// previous owner is in the topic served, whose end is read, and the first chunk is made when it is applied up to there. This
	// holds as long as the previous owner gives no chunks once the brokers have taken the partition from it. 0: there is no other
	// process. feed.Config.Longest is handed here.
	Elsewhere time.Duration `yaml:"-"`

	// Sources are asked for candidates while a chunk is made.
	Sources []ExternalSource `yaml:"sources"`
	// Model is asked for scores while a chunk is made.
	Model ExternalModel `yaml:"model"`
}

// DefaultConfig: pools of 500, 16 sources, 10,000 followees, 100,000 seen pins and 200 frozen entries a user, no expiry; away after
// 30 days.
func DefaultConfig() Config {
	return Config{Cap: 500, Sources: 16, MaxFollowees: 10_000, SeenCap: 100_000, Frozen: 200, AwayAfter: 30 * 24 * time.Hour}
}

// DefaultGeneratorConfig has the feeds of rules.Default, and asks nobody outside.
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
