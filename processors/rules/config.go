package rules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Feed is the set of rules of a feed. See Default.
type Feed struct {
	// Shares are the target shares of impressions by source, relative to each other, 0 or more. A source with share 0 is
	// never shown. A share for "explore" enables exploration; see Explore.
	Shares map[schemas.Source]float64 `yaml:"shares" help:"target shares of impressions by source, relative to each other, 0 or more; a share for explore enables exploration"`
	Others float64                    `yaml:"others" help:"share of each source that shares does not name, 0 or more"`
	Memory int                        `yaml:"memory" range:"10..10000" help:"impressions over which shares are balanced"`

	Affinity   float64 `yaml:"affinity" range:"0..100" help:"weight of affinities in the score; 0: none"`
	Popularity float64 `yaml:"popularity" range:"0..100" help:"weight of the save rate in the score; 0: none"`
	Model      float64 `yaml:"model" range:"0..100" help:"weight of the external model in the score, if one is configured; 0: none"`

	Caps    Caps    `yaml:"caps"`
	Defer   Defer   `yaml:"defer"`
	Explore Explore `yaml:"explore"`
	Arms    []Arm   `yaml:"arms" help:"experiment arms, at most 20"`
}

// Caps limit how often a facet occurs among consecutive items of a chunk. If they would leave the chunk short, they are
// relaxed: first the interest cap is dropped, then the board cap. Then the author cap is doubled, and then all caps are
// dropped.
type Caps struct {
	Window   int `yaml:"window" range:"0..100" help:"consecutive items in which facets are limited; 0: no caps"`
	Author   int `yaml:"author" range:"0..100" help:"maximum items of one author in a window; 0: no limit"`
	Board    int `yaml:"board" range:"0..100" help:"maximum items of one board in a window; 0: no limit"`
	Interest int `yaml:"interest" range:"0..100" help:"maximum items of one interest in a window; 0: no limit"`
}

// Defer holds back weak candidates. A session is a sequence of visits with items, each at most Session after the previous
// one.
type Defer struct {
	Margin  float64       `yaml:"margin" range:"0..1000" help:"distance from the best score of a source in the session, beyond which its candidates are weak; 0: nothing is deferred"`
	Budget  int           `yaml:"budget" range:"0..10000" help:"weak items that a session may show"`
	Session time.Duration `yaml:"session" help:"longest time between two visits of a session; at least 1s if margin is not 0"`
	Expiry  time.Duration `yaml:"expiry" help:"how long after its deferral a candidate that was not shown is dropped; at least session"`
}

// Explore defines which pins and authors are new.
type Explore struct {
	Pin    int64 `yaml:"pin" range:"0..1000000000" help:"impressions below which a pin is new"`
	Author int64 `yaml:"author" range:"0..1000000000" help:"impressions below which an author is new"`
}

// Arm is an experiment arm: it applies the rules of another feed to a share of the users.
type Arm struct {
	Feed  string  `yaml:"feed" help:"name of the other feed, which must have no arms"`
	Share float64 `yaml:"share" help:"share of the users, above 0; the sum over all arms is at most 1"`
}

// Default returns the two feeds "home", with every rule enabled, and "plain", with shares only.
func Default() Feeds {
	shares := func() map[schemas.Source]float64 {
		return map[schemas.Source]float64{schemas.Following: 0.6, schemas.FromInterest: 0.3, schemas.Related: 0.1}
	}
	home := Feed{
		Shares: shares(), Others: 0.1, Memory: 100, Affinity: 1, Popularity: 0.5, Model: 1,
		Caps:    Caps{Window: 10, Author: 2, Board: 3, Interest: 5},
		Defer:   Defer{Margin: 10, Budget: 200, Session: 30 * time.Minute, Expiry: 7 * 24 * time.Hour},
		Explore: Explore{Pin: 100, Author: 1000},
	}
	home.Shares[schemas.Explore] = 0.05
	return Feeds{Home: home, "plain": {Shares: shares(), Others: 0.1, Memory: 100}}
}

// Home is the name of the default feed.
const Home = "home"

// Share returns the target share of a source. Exploration has none unless Shares names it.
func (f Feed) Share(s schemas.Source) float64 {
	if share, ok := f.Shares[s]; ok || s == schemas.Explore {
		return share
	}
	return f.Others
}

// problems returns an error for every value that is out of bounds, with its name.
func (f Feed) problems() []error {
	errs := settings.Split(errors.Join(
		settings.Validate(f), settings.Under("caps", settings.Validate(f.Caps)), settings.Under("explore", settings.Validate(f.Explore)),
		settings.Within("arms: length", len(f.Arms), 0, 20),
	))
	errs = append(errs, f.shareProblems()...)
	errs = append(errs, f.Defer.problems()...)
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (f Feed) shareProblems() []error {
	errs := []error{share("others", f.Others)}
	sum := f.Others
	for _, source := range slices.Sorted(maps.Keys(f.Shares)) {
		errs = append(errs, share("shares."+string(source), f.Shares[source]))
		if source != schemas.Explore {
			sum += f.Shares[source]
		}
	}
	if sum == 0 {
		errs = append(errs, errors.New("shares: all are 0, so no pin would ever be shown: want one above 0"))
	}
	return errs
}

func (d Defer) problems() []error {
	errs := settings.Split(settings.Under("defer", settings.Validate(d)))
	if d.Margin > 0 && d.Session < time.Second {
		errs = append(errs, fmt.Errorf("defer.session: %s: want at least 1s", d.Session))
	}
	if d.Expiry < d.Session {
		errs = append(errs, fmt.Errorf("defer.expiry: %s: want at least defer.session, %s", d.Expiry, d.Session))
	}
	return errs
}

func share(name string, v float64) error {
	if v >= 0 && !math.IsInf(v, 0) {
		return nil
	}
	return fmt.Errorf("%s: %v: want 0 or more", name, v)
}
