package pools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Config are the caps of the pools. See DefaultConfig.
type Config struct {
	Cap     int           `yaml:"cap"`      // candidates of a user and source, and hidden ones; 10 to 1000000
	Sources int           `yaml:"sources"`  // of a user, offered ones included; 3 to 100
	SeenCap int           `yaml:"seen_cap"` // pins of a user remembered as seen, 1000 to 1000000
	Frozen  int           `yaml:"frozen"`   // newest frozen entries of a user that a chunk carries, 100 to 1000
	Expiry  time.Duration `yaml:"expiry"`   // age of a pin at which it is no candidate any more, at least 1m; 0: none

	// AwayAfter is how long after a visit, by arrival time, or, without any visit, after the first follow, a user is away:
	// the followees deliver nothing new until the next visit; at least 1s, or 0 for never.
	AwayAfter time.Duration `yaml:"away_after"`
}

// GeneratorConfig are the feeds that are made of the pools. See DefaultGeneratorConfig.
type GeneratorConfig struct {
	Head    int             `yaml:"head"`    // best candidates of each source that a chunk is made of, 100 to 1000
	FeedMax int             `yaml:"-"`       // frozen entries of a user that the feed store keeps, at least 10; its own setting is handed here
	Welcome time.Duration   `yaml:"welcome"` // how long a chunk for one who was away waits for what the followees bring, 0 to 1m; shorter than callers wait
	Feeds   map[string]Feed `yaml:"feeds"`   // by name: "home", "plain" …
}

// Feed are the rules by which a chunk is arranged. Without Shares every source has the same.
type Feed struct {
	Shares   map[schemas.Source]float64 `yaml:"shares"`   // target share of the impressions by source, relative to the others; each positive
	Others   float64                    `yaml:"others"`   // the share of each source that Shares does not name, positive
	Memory   int                        `yaml:"memory"`   // impressions over which shares are held, 10 to 10000
	Affinity float64                    `yaml:"affinity"` // how far affinities move a score, see rescore; 0 to 100, 0: not at all
	Caps     Caps                       `yaml:"caps"`
}

// Caps bound how often a facet stands among neighbours. See arrange for how they give way.
type Caps struct {
	Window int `yaml:"window"` // neighbours looked at, 0 to 100; 0: no caps
	Author int `yaml:"author"` // items of one author in any Window in a row; 0: any number
	Board  int `yaml:"board"`  // of one board
}

// DefaultConfig: pools of 500, 16 sources, 100,000 seen pins and 200 frozen entries a user, no expiry; away after
// 30 days.
func DefaultConfig() Config {
	return Config{Cap: 500, Sources: 16, SeenCap: 100_000, Frozen: 200, AwayAfter: 30 * 24 * time.Hour}
}

// DefaultGeneratorConfig has the two feeds "home", with every rule on, and "plain", with shares and nothing else.
func DefaultGeneratorConfig() GeneratorConfig {
	shares := func() map[schemas.Source]float64 {
		return map[schemas.Source]float64{schemas.Following: 0.6, schemas.FromInterest: 0.3, schemas.Related: 0.1}
	}
	return GeneratorConfig{
		Head: 200, FeedMax: 2000, Welcome: 100 * time.Millisecond,
		Feeds: map[string]Feed{
			"home":  {Shares: shares(), Others: 0.1, Memory: 100, Affinity: 1, Caps: Caps{Window: 10, Author: 2, Board: 3}},
			"plain": {Shares: shares(), Others: 0.1, Memory: 100},
		},
	}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		between("cap", c.Cap, 10, 1_000_000),
		between("sources", c.Sources, 3, 100),
		between("seen_cap", c.SeenCap, 1000, 1_000_000),
		between("frozen", c.Frozen, 100, 1000),
	}
	if c.Expiry != 0 && c.Expiry < time.Minute {
		errs = append(errs, fmt.Errorf("expiry %s: at least 1m, or 0 for none", c.Expiry))
	}
	if c.AwayAfter != 0 && c.AwayAfter < time.Second {
		errs = append(errs, fmt.Errorf("away_after %s: at least 1s, or 0 for never", c.AwayAfter))
	}
	return errors.Join(errs...)
}

// Validate reports every field that is out of its bounds.
func (c GeneratorConfig) Validate() error {
	errs := []error{
		between("head", c.Head, 100, 1000),
		between("feed_max", c.FeedMax, 10, 1_000_000_000),
	}
	if c.Welcome < 0 || c.Welcome > time.Minute {
		errs = append(errs, fmt.Errorf("welcome %s: from 0s to 1m", c.Welcome))
	}
	if len(c.Feeds) == 0 {
		errs = append(errs, errors.New("feeds: at least one is needed"))
	}
	for _, name := range sortedKeys(c.Feeds) {
		for _, err := range c.Feeds[name].problems() {
			errs = append(errs, fmt.Errorf("feeds.%s.%w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (f Feed) problems() []error {
	errs := []error{
		between("memory", f.Memory, 10, 10_000),
		between("caps.window", f.Caps.Window, 0, 100),
		between("caps.author", f.Caps.Author, 0, 100),
		between("caps.board", f.Caps.Board, 0, 100),
	}
	if !(f.Others > 0) {
		errs = append(errs, fmt.Errorf("others %v: must be positive", f.Others))
	}
	if !(f.Affinity >= 0 && f.Affinity <= 100) {
		errs = append(errs, fmt.Errorf("affinity %v: from 0 to 100", f.Affinity))
	}
	for _, source := range sortedKeys(f.Shares) {
		if share := f.Shares[source]; !(share > 0) {
			errs = append(errs, fmt.Errorf("shares.%s %v: must be positive", source, share))
		}
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func between(name string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s %d: from %d to %d", name, n, least, most)
	}
	return nil
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return strings.Compare(string(a), string(b)) })
	return keys
}

// share returns the target share of a source.
func (f Feed) share(s schemas.Source) float64 {
	if share, ok := f.Shares[s]; ok {
		return share
	}
	return f.Others
}
