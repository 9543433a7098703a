package actors

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config configures profiles, affinities and edge weights. See DefaultConfig.
type Config struct {
	// Verbs are the weights of verbs in affinities. Verbs that are missing have no weight. All groups share one set, so this
	// group's part of a configuration file does not contain it. Default schemas.DefaultVerbs.
	Verbs schemas.Verbs `yaml:"-"`

	HalfLife  time.Duration `yaml:"half_life" default:"336h" range:"1h..8760h" help:"age at which an action counts half in an affinity"`
	Top       int           `yaml:"top" default:"50" range:"1..500" help:"affinities sent per user"`
	Every     time.Duration `yaml:"every" default:"10s" range:"100ms..1h" help:"minimum time between two times that a user's affinities are sent"`
	MaxFacets int           `yaml:"max_facets" default:"1000" range:"top..10000" help:"affinities kept per user; temporarily up to a quarter more"`
	// Steps has 1 to 20 steps. The default is 0.5 below -2, 1, 1.5 from 3, 2 from 8, 3 from 20.
	Steps Steps   `yaml:"steps" help:"weights of edges by affinity: each step has the affinity at which it starts, and the weight; 1 to 20 steps"`
	Band  float64 `yaml:"band" default:"0.2" range:"0..0.9" help:"how far below a step's start an affinity must fall before it leaves the step, as a fraction of the start"`

	Joins          Joins          `yaml:"joins" help:"attributes joined to actions, by verb; at most 64 verbs; none: all attributes"`
	EmbeddingVerbs []schemas.Verb `yaml:"embedding_verbs" help:"verbs whose actions add the actor's embedding to the mean embedding of the pin's recent actors; none: no means are kept"`

	RelatedFrom   float64       `yaml:"related_from" default:"0.5" range:"0.000001..1000" help:"minimum weight of an action that relates its pin to others"`
	RelatedWithin time.Duration `yaml:"related_within" default:"30m" range:"0s..24h" help:"maximum time between two actions of a user that makes their pins neighbors"`
	RelatedRecent int           `yaml:"related_recent" default:"4" range:"0..50" help:"such actions remembered per user"`
}

// DefaultConfig returns the defaults of the tags, schemas.DefaultVerbs, and the steps and verbs that the fields name.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Verbs = schemas.DefaultVerbs()
	c.Steps = Steps{{math.Inf(-1), 0.5}, {-2, 1}, {3, 1.5}, {8, 2}, {20, 3}}
	c.EmbeddingVerbs = []schemas.Verb{schemas.Closeup, schemas.Click, schemas.Save}
	return c
}

// Validate reports every value that is out of bounds.
func (c Config) Validate() error {
	return errors.Join(
		c.Verbs.Validate(),
		settings.Validate(c),
		c.Steps.validate("steps"),
		c.Joins.validate("joins"),
		c.validateEmbeddingVerbs(),
	)
}

func (c Config) validateEmbeddingVerbs() error {
	var errs []error
	for _, v := range c.EmbeddingVerbs {
		if _, known := c.Verbs[v]; !known {
			errs = append(errs, fmt.Errorf("embedding_verbs: %q: want a known verb", v))
		}
	}
	return errors.Join(errs...)
}
