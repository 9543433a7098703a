package featurelog

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Config says what is logged and how files are cut. See DefaultConfig.
type Config struct {
	// Rules are asked in their order; the first for an entity's kind decides about it. At most 100; default none: nothing
	// is logged.
	Rules []Rule `yaml:"rules"`

	Dir          string        `yaml:"dir"`            // of the files, below the directory of all state unless absolute; default feature-log
	MaxFileBytes int64         `yaml:"max_file_bytes"` // then a file is closed, 64 KiB to 4 GiB; default 128 MiB
	MaxFileAge   time.Duration `yaml:"max_file_age"`   // likewise, 1 s to 24 h; default 15 m
}

// Rule samples entities of one kind.
type Rule struct {
	Entity   feature.Entity `yaml:"entity"`   // user, pin or pair
	Features []string       `yaml:"features"` // that are logged, at most feature.MaxFeatures; none: all that were asked for
	Share    float64        `yaml:"share"`    // of the entities, above 0 to 1
	// Whole samples entities and not answers: of one in the sample every answer is logged, of the others none.
	Whole bool `yaml:"whole"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Dir: "feature-log", MaxFileBytes: 128 << 20, MaxFileAge: 15 * time.Minute}
}

const maxRules = 100

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		bounds.Within("max_file_bytes", c.MaxFileBytes, 64<<10, 4<<30),
		bounds.Within("max_file_age", c.MaxFileAge, time.Second, 24*time.Hour),
		bounds.Within("rules: number", len(c.Rules), 0, maxRules),
	}
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: is empty: a directory is needed"))
	}
	for i, r := range c.Rules {
		errs = append(errs, r.validate(fmt.Sprintf("rules[%d]", i)))
	}
	return errors.Join(errs...)
}

func (r Rule) validate(name string) error {
	var errs []error
	if r.Entity != feature.User && r.Entity != feature.Pin && r.Entity != feature.Pair {
		errs = append(errs, fmt.Errorf("%s.entity: %q: want user, pin or pair", name, r.Entity))
	}
	if !(r.Share > 0 && r.Share <= 1) { // also of NaN
		errs = append(errs, fmt.Errorf("%s.share: %v: want above 0 to 1", name, r.Share))
	}
	if len(r.Features) > feature.MaxFeatures {
		errs = append(errs, fmt.Errorf("%s.features: %d: at most %d", name, len(r.Features), feature.MaxFeatures))
	}
	return errors.Join(errs...)
}
