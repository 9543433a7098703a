package rules

import (
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
	Shares       map[schemas.Source]float64 `yaml:"shares" help:"target shares of impressions by source, relative to each other, 0 or more; a share for explore enables exploration"`
	DefaultShare float64                    `yaml:"default_share" help:"share of each source that is not in shares, 0 or more; popular has none"`
	// Fill are sources without a share. They fill the places that the shares leave over.
	Fill        []schemas.Source `yaml:"fill" help:"sources that fill the places that the sources with shares leave over; they have no share"`
	ShareWindow int              `yaml:"share_window" range:"10..10000" help:"number of impressions over which shares are balanced"`

	AffinityWeight   float64 `yaml:"affinity_weight" range:"0..100" help:"weight of affinities in the score; 0: none"`
	PopularityWeight float64 `yaml:"popularity_weight" range:"0..100" help:"weight of the save rate in the score; 0: none"`
	LanguageWeight   float64 `yaml:"language_weight" range:"0..100" help:"weight of the pin's language in the score: multiplied by the language's share of the user's affinities for languages; 0: none"`
	ModelWeight      float64 `yaml:"model_weight" range:"0..100" help:"weight of the external model in the score, if one is configured; 0: none"`
	// Utility combines the outputs of a model with several. "proba[1]" is column 1 of the output proba.
	Utility map[string]float64 `yaml:"utility" help:"weights of the outputs of the external model, by name; empty: its first output"`

	Seen          Seen          `yaml:"seen" help:"pins that count as seen: delivered, the default; or reported: those that the client reports with client-impressions, and others only until report_timeout"`
	ReportTimeout time.Duration `yaml:"report_timeout" help:"time after a visit when a pin that the client did not report can be shown again, 1m to 720h; only for seen: reported"`

	Caps           Caps      `yaml:"caps"`
	Spacing        Spacing   `yaml:"spacing"`
	Defer          Defer     `yaml:"defer"`
	Explore        Explore   `yaml:"explore"`
	Randomize      Randomize `yaml:"randomize"`
	ExperimentArms []Arm     `yaml:"experiment_arms" help:"experiment arms, at most 20"`
}

// Seen says which pins count as seen.
type Seen string

// The values of Seen. With Reported, a delivered pin counts as seen until the report timeout.
const (
	Delivered Seen = "delivered" // also ""
	Reported  Seen = "reported"
)

// Caps limit how often a facet occurs among consecutive items of a chunk. If they would leave the chunk short, they are
// relaxed: first the interest cap is dropped, then the board cap. Then the author cap is doubled, and then all caps are
// dropped.
type Caps struct {
	Window   int `yaml:"window" range:"0..100" help:"number of consecutive items in which facets are limited; 0: no caps"`
	Author   int `yaml:"author" range:"0..100" help:"maximum items of one author in a window; 0: no limit"`
	Board    int `yaml:"board" range:"0..100" help:"maximum items of one board in a window; 0: no limit"`
	Interest int `yaml:"interest" range:"0..100" help:"maximum items of one interest in a window; 0: no limit"`
}

// Defer configures the deferral of weak candidates. A session is a sequence of visits with items, each at most Session after
// the previous one.
type Defer struct {
	Margin         float64       `yaml:"margin" range:"0..1000" help:"distance below the best score of a source in the session, beyond which candidates are weak; 0: no deferral"`
	Budget         int           `yaml:"budget" range:"0..10000" help:"maximum number of weak items shown per session"`
	SessionTimeout time.Duration `yaml:"session_timeout" help:"time without a visit after which a session ends; at least 1s if margin is not 0"`
	Expiry         time.Duration `yaml:"expiry" help:"time after its deferral when a candidate that was not shown is dropped; at least session_timeout"`
}

// Explore defines which pins and authors are new.
type Explore struct {
	PinImpressions    int64 `yaml:"pin_impressions" range:"0..1000000000" help:"impressions below which a pin is new"`
	AuthorImpressions int64 `yaml:"author_impressions" range:"0..1000000000" help:"impressions below which an author is new"`
}

// Randomize draws the items of each place at random, with known probabilities, so that logged visits can evaluate other rules.
type Randomize struct {
	Candidates  int     `yaml:"candidates" range:"0..50" help:"number of best candidates of a source that each place is drawn from, by the softmax of score / temperature; 0: nothing is random"`
	Temperature float64 `yaml:"temperature" range:"0..1000" help:"difference of scores that is a factor of e in probability, above 0 if candidates is"`
}

// Arm is an experiment arm: it applies the rules of another feed to a share of the users.
type Arm struct {
	Feed  string  `yaml:"feed" help:"name of the feed of the arm; this feed must have no arms"`
	Share float64 `yaml:"share" help:"share of the users, above 0; at most 1 over all arms"`
}

// Default returns the two feeds "home", with every rule enabled, and "plain", with shares only.
func Default() Feeds {
	shares := func() map[schemas.Source]float64 {
		return map[schemas.Source]float64{schemas.Following: 0.6, schemas.FromInterest: 0.3, schemas.Related: 0.1}
	}
	home := Feed{
		Shares: shares(), DefaultShare: 0.1, Fill: []schemas.Source{schemas.FromPopular}, ShareWindow: 100,
		AffinityWeight: 1, PopularityWeight: 0.5, LanguageWeight: 0.5, ModelWeight: 1,
		Caps:    Caps{Window: 10, Author: 2, Board: 3, Interest: 5},
		Defer:   Defer{Margin: 10, Budget: 200, SessionTimeout: 30 * time.Minute, Expiry: 7 * 24 * time.Hour},
		Explore: Explore{PinImpressions: 100, AuthorImpressions: 1000},
	}
	home.Shares[schemas.Explore] = 0.05
	return Feeds{Home: home, "plain": {Shares: shares(), DefaultShare: 0.1, ShareWindow: 100}}
}

// Home is the name of the default feed.
const Home = "home"

// Outputs returns the names of the model's outputs that the feed uses; none: the first output.
func (f Feed) Outputs() []string { return slices.Sorted(maps.Keys(f.Utility)) }

// validate returns an error that lists every value that is out of bounds.
func (f Feed) validate() error {
	problems := settings.Problems{
		settings.Validate(f), settings.Under("caps", settings.Validate(f.Caps)), settings.Under("explore", settings.Validate(f.Explore)),
		settings.Under("randomize", f.Randomize.validate()), settings.Under("spacing", settings.Validate(f.Spacing)),
		settings.Within("experiment_arms: length", len(f.ExperimentArms), 0, 20), settings.Within("utility: length", len(f.Utility), 0, 8),
	}
	for _, output := range f.Outputs() {
		weight := f.Utility[output]
		problems.Want(!math.IsNaN(weight) && !math.IsInf(weight, 0), "utility.%s: %v: want a finite number", output, weight)
	}
	problems.Add(f.validateShares())
	for i, source := range f.Fill {
		isFree := f.Shares[source] == 0 && source != schemas.Explore && source != "" && !slices.Contains(f.Fill[:i], source)
		problems.Want(isFree, "fill[%d]: %q: want the name of a source that has no share, once", i, source)
	}
	problems.Add(settings.Under("defer", f.Defer.validate()))
	const least, most = time.Minute, 30 * 24 * time.Hour
	problems.Want(f.Seen == "" || f.Seen == Delivered || f.Seen == Reported, "seen: %q: want delivered or reported", f.Seen)
	if f.Seen == Reported {
		problems.Add(settings.Within("report_timeout", f.ReportTimeout, least, most))
	}
	return problems.Err()
}

func (f Feed) validateShares() error {
	problems := settings.Problems{share("default_share", f.DefaultShare)}
	sum := f.DefaultShare
	for _, source := range slices.Sorted(maps.Keys(f.Shares)) {
		problems.Add(share("shares."+string(source), f.Shares[source]))
		if source != schemas.Explore {
			sum += f.Shares[source]
		}
	}
	problems.Want(sum != 0, "shares: all are 0, so no pin would ever be shown: want one above 0")
	return problems.Err()
}

func (r Randomize) validate() error {
	if r.Candidates > 0 && !(r.Temperature > 0) {
		return fmt.Errorf("temperature: %v: want above 0", r.Temperature)
	}
	return settings.Validate(r)
}

func (d Defer) validate() error {
	problems := settings.Problems{settings.Validate(d)}
	problems.Want(d.Margin <= 0 || d.SessionTimeout >= time.Second, "session_timeout: %s: want at least 1s", d.SessionTimeout)
	problems.Want(d.Expiry >= d.SessionTimeout, "expiry: %s: want at least defer.session_timeout, %s", d.Expiry, d.SessionTimeout)
	return problems.Err()
}

func share(name string, v float64) error {
	if v >= 0 && !math.IsInf(v, 0) {
		return nil
	}
	return fmt.Errorf("%s: %v: want 0 or more", name, v)
}
