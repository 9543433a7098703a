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
	Shares map[schemas.Source]float64 `yaml:"shares"`
	Others float64                    `yaml:"others"` // share of each source that Shares does not name, 0 or more
	Memory int                        `yaml:"memory"` // number of impressions over which shares are balanced, 10 to 10000

	Affinity   float64 `yaml:"affinity"`   // weight of affinities in the score, 0 to 100; 0: none
	Popularity float64 `yaml:"popularity"` // weight of the save rate, 0 to 100
	Model      float64 `yaml:"model"`      // weight of the model, if one is configured, 0 to 100

	Caps    Caps    `yaml:"caps"`
	Defer   Defer   `yaml:"defer"`
	Explore Explore `yaml:"explore"`
	Arms    []Arm   `yaml:"arms"` // at most 20
}

// Caps limit how often a facet occurs among consecutive items of a chunk. If they would leave the chunk short, they are
// relaxed: first the interest cap is dropped, then the board cap. Then the author cap is doubled, and then all caps are
// dropped.
type Caps struct {
	Window   int `yaml:"window"`   // number of consecutive items, 0 to 100; 0: no caps
	Author   int `yaml:"author"`   // maximum items of one author in a window, 0 to 100; 0: no limit
	Board    int `yaml:"board"`    // same for one board
	Interest int `yaml:"interest"` // same for one interest
}

// Defer holds back weak candidates. A session is a sequence of visits with items, each at most Session after the previous
// one.
type Defer struct {
	// Margin is the score below the best score of a source in the session, under which its candidates are weak; 0 to 1000, 0:
	// nothing is deferred.
	Margin  float64       `yaml:"margin"`
	Budget  int           `yaml:"budget"`  // weak items that a session may show, 0 to 10000
	Session time.Duration `yaml:"session"` // at least 1s if Margin is not 0
	// Expiry is how long after its deferral a candidate that was not shown is dropped; at least Session.
	Expiry time.Duration `yaml:"expiry"`
}

// Explore defines which pins and authors are new.
type Explore struct {
	Pin    int64 `yaml:"pin"`    // a pin with fewer impressions is new; 0 or more
	Author int64 `yaml:"author"` // an author with fewer impressions is new; 0 or more
}

// Arm is an experiment arm: it applies the rules of another feed to a share of the users.
type Arm struct {
	Feed  string  `yaml:"feed"`  // name of the other feed, which must have no arms
	Share float64 `yaml:"share"` // share of the users, above 0; the sum over all arms is at most 1
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
	errs := []error{
		settings.Within("memory", f.Memory, 10, 10_000),
		settings.Within("affinity", f.Affinity, 0, 100),
		settings.Within("popularity", f.Popularity, 0, 100),
		settings.Within("model", f.Model, 0, 100),
		settings.Within("caps.window", f.Caps.Window, 0, 100),
		settings.Within("caps.author", f.Caps.Author, 0, 100),
		settings.Within("caps.board", f.Caps.Board, 0, 100),
		settings.Within("caps.interest", f.Caps.Interest, 0, 100),
		settings.Within("explore.pin", f.Explore.Pin, 0, 1_000_000_000),
		settings.Within("explore.author", f.Explore.Author, 0, 1_000_000_000),
		settings.Within("arms: number of them", len(f.Arms), 0, 20),
	}
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
		errs = append(errs, errors.New("shares: all are 0: nothing would ever be shown"))
	}
	return errs
}

func (d Defer) problems() []error {
	errs := []error{settings.Within("defer.budget", d.Budget, 0, 10_000), settings.Within("defer.margin", d.Margin, 0, 1000)}
	if d.Margin > 0 && d.Session < time.Second {
		errs = append(errs, fmt.Errorf("defer.session: %s: want at least 1s", d.Session))
	}
	if d.Expiry < d.Session {
		errs = append(errs, fmt.Errorf("defer.expiry: %s: want at least the session's %s", d.Expiry, d.Session))
	}
	return errs
}

func share(name string, v float64) error {
	if v >= 0 && !math.IsInf(v, 0) {
		return nil
	}
	return fmt.Errorf("%s: %v: want 0 or more", name, v)
}
