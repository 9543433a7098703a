package featurelog

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Config says what is logged and when files are written. See DefaultConfig.
type Config struct {
	// The first rule for an entity's kind applies.
	Rules []Rule `yaml:"rules" help:"rules that select the logged entities, at most 100; none: nothing is logged"`

	Dir          string         `yaml:"dir" default:"feature-log" help:"directory of the files, relative to the state directory unless absolute"`
	MaxFileBytes settings.Bytes `yaml:"max_file_bytes" default:"32MiB" range:"64KiB..1GiB" help:"size of the records in memory at which they are written to files"`
	MaxFileAge   time.Duration  `yaml:"max_file_age" default:"15m" range:"1s..24h" help:"time after which records in memory are written to files"`
}

// Rule samples entities of one kind.
type Rule struct {
	Entity   feature.Entity `yaml:"entity" help:"user, pin or pair"`
	Features []string       `yaml:"features" help:"features to log, at most 100; none: all requested ones"`
	Share    float64        `yaml:"share" help:"share of the entities, above 0, at most 1"`
	// Whole samples entities instead of answers: every answer about a sampled entity is logged, and none about the
	// others.
	SampleEntities bool `yaml:"sample_entities" help:"sample entities instead of answers: all answers about a sampled entity are logged"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

const maxRules = 100

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c), settings.Within("rules: number", len(c.Rules), 0, maxRules)}
	problems.Want(c.Dir != "", "dir: is empty: a directory is needed")
	for i, r := range c.Rules {
		problems.Add(settings.Under(fmt.Sprintf("rules[%d]", i), r.validate()))
	}
	return problems.Err()
}

func (r Rule) validate() error {
	var problems settings.Problems
	problems.Want(r.Entity == feature.User || r.Entity == feature.Pin || r.Entity == feature.Pair,
		"entity: %q: want user, pin or pair", r.Entity)
	problems.Want(r.Share > 0 && r.Share <= 1, "share: %v: want above 0 to 1", r.Share) // also rejects NaN
	problems.Want(len(r.Features) <= feature.MaxFeatures, "features: %d: at most %d", len(r.Features), feature.MaxFeatures)
	return problems.Err()
}
