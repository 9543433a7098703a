package interests

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config holds the settings for interests. See DefaultConfig.
type Config struct {
	MaxTerms     int               `yaml:"max_terms" default:"5000" range:"10..1000000" help:"maximum number of counted terms per partition"`
	MaxAuthors   int               `yaml:"max_authors" default:"30" range:"1..1000" help:"maximum number of counted authors per term"`
	MinPins      int               `yaml:"min_pins" default:"5" range:"1..1000000" help:"minimum number of pins of a candidate term"`
	MinAuthors   int               `yaml:"min_authors" default:"3" range:"1..max_authors" help:"minimum number of authors of a candidate term"`
	StopWords    []string          `yaml:"stop_words" help:"stop words, in addition to the built-in ones; no term starts or ends with one"`
	BlockedTerms map[string]string `yaml:"blocked_terms" help:"terms that are never counted and never become interests, each with the reason"`

	MaxInterests int `yaml:"max_interests" default:"50" range:"1..1000" help:"maximum number of interests stored per user"`
	MaxEvidence  int `yaml:"max_evidence" default:"5" range:"0..100" help:"maximum number of actions stored as evidence per interest of a user"`

	MaxPinInterests     int           `yaml:"max_pin_interests" default:"6" range:"1..64" help:"maximum number of interests of a pin that count"`
	AttributionWindow   time.Duration `yaml:"attribution_window" default:"168h" range:"1m..720h" help:"time after an impression in which an action counts for the impression's source"`
	EngagementRetention time.Duration `yaml:"engagement_retention" default:"672h" range:"24h..9600h" help:"retention of the daily counts of engagement, in whole days"`
}

// DefaultConfig returns the defaults of the tags, without stop words and blocked terms.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.StopWords, c.BlockedTerms = []string{}, map[string]string{}
	return c
}

// Blocked returns a function that explains why a folded term is not counted and has no interest, regardless of earlier
// counts and decisions. It returns the reason in Block, or the stop word that the term begins or ends with. It returns
// "" for a term that is not blocked.
func (c Config) Blocked() func(term string) (reason string) { return newVocabulary(c).blockReason }

// Validate returns an error that lists every value that is out of its bounds.
func (c Config) Validate() error {
	p := settings.Problems{settings.Validate(c)}
	for term, reason := range c.BlockedTerms {
		p.Want(reason != "" && Fold(term) != "", "blocked_terms: %q: %q: want a term with a reason", term, reason)
	}
	return p.Err()
}
