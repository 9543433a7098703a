package interests

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config holds the settings for interests. See DefaultConfig.
type Config struct {
	MaxTerms  int               `yaml:"max_terms" default:"5000" range:"10..1000000" help:"counted terms per partition"`
	MaxPeople int               `yaml:"max_people" default:"30" range:"1..1000" help:"counted authors per term"`
	MinPins   int               `yaml:"min_pins" default:"5" range:"1..1000000" help:"minimum number of pins of a candidate"`
	MinPeople int               `yaml:"min_people" default:"3" range:"1..max_people" help:"minimum number of authors of a candidate"`
	Stop      []string          `yaml:"stop" help:"stop words, in addition to the common ones: no term begins or ends with one"`
	Block     map[string]string `yaml:"block" help:"terms that are never counted and have no interest, each with the reason"`

	HalfLife time.Duration `yaml:"half_life" default:"720h" range:"1h..8760h" help:"half-life of the strength of a user's interests, and of recent pins"`
	Keep     int           `yaml:"keep" default:"50" range:"1..1000" help:"interests kept per user"`
	Evidence int           `yaml:"evidence" default:"5" range:"0..100" help:"actions kept per interest of a user"`

	Interests         int           `yaml:"interests" default:"6" range:"1..64" help:"interests of a pin that count"`
	AttributionWindow time.Duration `yaml:"attribution_window" default:"168h" range:"1m..720h" help:"how long after an impression an action counts for the impression's source"`
	MaxSeen           int           `yaml:"max_seen" default:"10000" range:"0..40000" help:"users of a pin that are stored for attribution_window"`
	Days              int           `yaml:"days" default:"28" range:"1..400" help:"days of engagement that are kept"`
}

// DefaultConfig returns the defaults of the tags, without stop words and blocked terms.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Stop, c.Block = []string{}, map[string]string{}
	return c
}

// Blocked returns a function that explains why a folded term is not counted and has no interest, regardless of earlier counts
// and decisions. It returns the reason in Block, or the stop word that the term begins or ends with. It returns "" for a
// term that is not blocked.
func (c Config) Blocked() func(term string) (reason string) { return newVocabulary(c).blockReason }

// Validate returns an error that lists every value that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{settings.Validate(c)}
	for term, reason := range c.Block {
		if reason == "" || Fold(term) == "" {
			problems = append(problems, fmt.Errorf("block: %q: %q: want a term with a reason", term, reason))
		}
	}
	return errors.Join(problems...)
}
