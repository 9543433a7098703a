package actors

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config configures profiles, affinities and edge weights. See DefaultConfig.
type Config struct {
	// Verbs are the weights of verbs in affinities. Verbs that are missing have no weight. All groups share one set, so it
	// is not read from this group's section of the configuration file. The default is schemas.DefaultVerbs.
	Verbs schemas.Verbs `yaml:"-"`

	HalfLife  time.Duration `yaml:"half_life"`  // after which an action counts half; 1h-8760h, default 336h (two weeks)
	Top       int           `yaml:"top"`        // affinities sent per user; 1-500, default 50
	Every     time.Duration `yaml:"every"`      // least time between two times that they are sent; 100ms-1h, default 1s
	MaxFacets int           `yaml:"max_facets"` // affinities kept per user, temporarily up to a quarter more; Top to 10,000, default 1000
	Steps     Steps         `yaml:"steps"`      // 1 to 20; default 0.5 below -2, 1, 1.5 from 3, 2 from 8, 3 from 20
	Band      float64       `yaml:"band"`       // how far below a step's start it is left, as a fraction of the start; 0-0.9, default 0.2

	Joins Joins `yaml:"joins"` // attributes that are joined to actions, by verb; at most 64 verbs; default none: all attributes
	// EmbeddingVerbs are the verbs whose actions add the actor's embedding to the mean embedding of the pin's recent actors.
	// The default is closeup, click and save. Without verbs, no means are kept.
	EmbeddingVerbs []schemas.Verb `yaml:"embedding_verbs"`

	RelatedFrom   float64       `yaml:"related_from"`   // least weight of an action that relates its pin to others, above 0 to 1000; default 0.5
	RelatedWithin time.Duration `yaml:"related_within"` // longest time between two actions of a user that makes their pins neighbors; 0-24h, default 30m
	RelatedRecent int           `yaml:"related_recent"` // such actions remembered per user, 0-50; default 4
}

// DefaultConfig returns the defaults that the field comments state.
func DefaultConfig() Config {
	return Config{
		Verbs:     schemas.DefaultVerbs(),
		HalfLife:  14 * 24 * time.Hour,
		Top:       50,
		Every:     time.Second,
		MaxFacets: 1000,
		Steps:     Steps{{math.Inf(-1), 0.5}, {-2, 1}, {3, 1.5}, {8, 2}, {20, 3}},
		Band:      0.2,

		EmbeddingVerbs: []schemas.Verb{schemas.Closeup, schemas.Click, schemas.Save},

		RelatedFrom: 0.5, RelatedWithin: 30 * time.Minute, RelatedRecent: 4,
	}
}

// Validate reports every value that is out of bounds.
func (c Config) Validate() error {
	return errors.Join(
		c.Verbs.Validate(),
		bounds.Within("half_life", c.HalfLife, time.Hour, 8760*time.Hour),
		bounds.Within("top", c.Top, 1, 500),
		bounds.Within("every", c.Every, 100*time.Millisecond, time.Hour),
		bounds.Within("max_facets", c.MaxFacets, c.Top, 10_000),
		bounds.Within("band", c.Band, 0, 0.9),
		bounds.Within("related_from", c.RelatedFrom, math.SmallestNonzeroFloat64, 1000),
		bounds.Within("related_within", c.RelatedWithin, 0, 24*time.Hour),
		bounds.Within("related_recent", c.RelatedRecent, 0, 50),
		c.Steps.validate("steps"),
		c.Joins.validate("joins"),
		c.validateEmbeddingVerbs(),
	)
}

func (c Config) validateEmbeddingVerbs() error {
	var errs []error
	for _, v := range c.EmbeddingVerbs {
		if _, known := c.Verbs[v]; !known {
			errs = append(errs, fmt.Errorf("embedding_verbs: unknown verb %q", v))
		}
	}
	return errors.Join(errs...)
}
