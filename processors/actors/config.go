package actors

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config is what an installation decides about affinities. See DefaultConfig.
type Config struct {
	// Verbs are what each verb says about its actor's liking; a verb that is not in it says nothing. One set serves the
	// whole program, so it is not read from this group's part of a configuration file. Default schemas.DefaultVerbs.
	Verbs schemas.Verbs `yaml:"-"`

	HalfLife  time.Duration `yaml:"half_life"`  // after which an action counts half; 1h-8760h, default 336h (two weeks)
	Top       int           `yaml:"top"`        // affinities sent of a user; 1-500, default 50
	Every     time.Duration `yaml:"every"`      // they are sent once in this time at most; 100ms-1h, default 1s
	MaxFacets int           `yaml:"max_facets"` // affinities kept of a user, give or take a quarter; Top to 10,000, default 1000
	Steps     Steps         `yaml:"steps"`      // at most 20; default 0.5 below -2, 1, 1.5 from 3, 2 from 8, 3 from 20
	Band      float64       `yaml:"band"`       // an edge leaves its step this share below the step's start; 0-0.9, default 0.2

	Joins Joins `yaml:"joins"` // which attributes actions of a verb go on with; at most 64 verbs; default none: all
	// EmbeddingVerbs are the verbs whose actors' embeddings go into the mean that is kept of a pin's recent actors.
	// Default closeup, click, save; none: no means are kept.
	EmbeddingVerbs []schemas.Verb `yaml:"embedding_verbs"`

	RelatedFrom   float64       `yaml:"related_from"`   // weight from which on an action makes its pin related to others, above 0 to 1000; default 0.5
	RelatedWithin time.Duration `yaml:"related_within"` // between two actions of a user that make their pins neighbours; 0-24h, default 30m
	RelatedRecent int           `yaml:"related_recent"` // such actions of a user that are remembered, 0-50; default 4
}

// DefaultConfig returns the configuration that the field comments state.
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

// Validate reports every value that is out of its bounds.
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
