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
	Cap     int           `yaml:"cap"`      // candidates of a user and source, and hidden ones; 10 to 1000000
	Sources int           `yaml:"sources"`  // of a user, offered ones included; 3 to 100
	SeenCap int           `yaml:"seen_cap"` // pins of a user remembered as seen, 1000 to 1000000
	Frozen  int           `yaml:"frozen"`   // newest frozen entries of a user that a chunk carries, 100 to 1000
	Expiry  time.Duration `yaml:"expiry"`   // age of a pin at which it is no candidate any more, at least 1m; 0: none

	// AwayAfter is how long after a visit, by arrival time, or, without any visit, after the first follow, a user is away:
	// the followees deliver nothing new until the next visit; at least 1s, or 0 for never. Whoever is away when it becomes 0
	// is until the next visit or rebuild; whoever is here when it no longer is 0 may go away AwayAfter from the next visit,
	// follow or rebuild on.
	AwayAfter time.Duration `yaml:"away_after"`
}

// GeneratorConfig are the feeds that are made of the pools. See DefaultGeneratorConfig.
type GeneratorConfig struct {
	Head     int           `yaml:"head"`    // best candidates of each source that a chunk is made of, 100 to 1000
	HalfLife time.Duration `yaml:"-"`       // of write-time scores, see package score; the fan-out's own is handed here; 0: not known
	FeedMax  int           `yaml:"-"`       // frozen entries of a user that the feed store keeps, at least 10; its own setting is handed here
	Welcome  time.Duration `yaml:"welcome"` // how long a chunk for one who was away waits for what the followees bring, 0 to 1m; never more than three quarters of what a visit has left
	Feeds    rules.Feeds   `yaml:"feeds"`   // by name: "home", "plain" …

	// Elsewhere is how long a visit goes on at most to which a generator of another process has given a chunk: a partition
	// that may have been there before has no chunks for so long. 0: there is no other; feed.Config.Longest is handed here.
	Elsewhere time.Duration `yaml:"-"`

	Sources []ExternalSource `yaml:"sources"` // asked while a chunk is made
	Model   ExternalModel    `yaml:"model"`   // asked while a chunk is made
}

// DefaultConfig: pools of 500, 16 sources, 100,000 seen pins and 200 frozen entries a user, no expiry; away after
// 30 days.
func DefaultConfig() Config {
	return Config{Cap: 500, Sources: 16, SeenCap: 100_000, Frozen: 200, AwayAfter: 30 * 24 * time.Hour}
}

// DefaultGeneratorConfig has the feeds of rules.Default, and asks nobody outside.
func DefaultGeneratorConfig() GeneratorConfig {
	return GeneratorConfig{
		Head: 200, FeedMax: 2000, Welcome: 100 * time.Millisecond, Feeds: rules.Default(),
		Model: ExternalModel{Config: outside.Config{Timeout: 40 * time.Millisecond}, Candidates: 200},
	}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		bounds.Within("cap", c.Cap, 10, 1_000_000),
		bounds.Within("sources", c.Sources, 3, 100),
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
		bounds.Within("welcome", c.Welcome, 0, time.Minute),
	}
	return errors.Join(append(append(errs, c.Feeds.Validate()), c.externalProblems()...)...)
}
