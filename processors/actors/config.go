package actors

import (
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
	// CurrentVerbs returns the verbs if they can change while the group runs; nil: always Verbs.
	CurrentVerbs func() schemas.Verbs `yaml:"-"`

	AffinityHalfLife time.Duration `yaml:"affinity_half_life" default:"336h" range:"1h..8760h" help:"half-life of an action's contribution to an affinity"`
	TopAffinities    int           `yaml:"top_affinities" default:"50" range:"1..500" help:"number of strongest affinities emitted per user"`
	EmitInterval     time.Duration `yaml:"emit_interval" default:"10s" range:"100ms..1h" help:"minimum time between two emissions of a user's affinities"`
	MaxAffinities    int           `yaml:"max_affinities" default:"1000" range:"top_affinities..10000" help:"maximum number of affinities stored per user; temporarily up to a quarter more"`
	// EdgeWeightSteps has 0.5 below -2, 1, 1.5 from 3, 2 from 8, 3 from 20. Like EdgeWeightHysteresis, a configuration file does
	// not contain it.
	EdgeWeightSteps Steps `yaml:"-"`
	// EdgeWeightHysteresis is how far below the start of a step an affinity must fall to leave the step, as a fraction of the
	// start.
	EdgeWeightHysteresis float64 `yaml:"-" default:"0.2"`

	JoinedAttributes Joins          `yaml:"joined_attributes" help:"names of the attributes joined to actions, by verb, at most 64 verbs; none: all attributes"`
	EmbeddingVerbs   []schemas.Verb `yaml:"embedding_verbs" help:"verbs whose actions add the actor's embedding to the mean embedding of the pin's recent actors; none: no means"`

	RelatedMinWeight  float64       `yaml:"related_min_weight" default:"0.5" range:"0.000001..1000" help:"minimum weight of an action that makes its pin a neighbor of others"`
	RelatedWindow     time.Duration `yaml:"related_window" default:"30m" range:"0s..24h" help:"maximum time between two actions of a user that makes their pins neighbors"`
	RelatedMaxActions int           `yaml:"related_max_actions" default:"4" range:"0..50" help:"number of recent actions stored per user to find neighbors"`
}

// DefaultConfig returns the defaults of the tags, schemas.DefaultVerbs, and the steps and verbs that the fields name.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Verbs = schemas.DefaultVerbs()
	c.EdgeWeightSteps = Steps{{math.Inf(-1), 0.5}, {-2, 1}, {3, 1.5}, {8, 2}, {20, 3}}
	c.EmbeddingVerbs = []schemas.Verb{schemas.Closeup, schemas.Click, schemas.Save}
	return c
}

// Validate reports every value that is out of bounds.
func (c Config) Validate() error {
	problems := settings.Problems{
		c.Verbs.Validate(),
		settings.Validate(c),
		c.JoinedAttributes.validate("joined_attributes"),
	}
	for _, v := range c.EmbeddingVerbs {
		_, known := c.Verbs[v]
		problems.Want(known, "embedding_verbs: %q: want a known verb", v)
	}
	return problems.Err()
}

// weight returns the present weight of a verb in affinities.
func (c Config) weight(verb schemas.Verb) float64 {
	if c.CurrentVerbs != nil {
		return c.CurrentVerbs()[verb]
	}
	return c.Verbs[verb]
}
