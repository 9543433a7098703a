package generator

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/processors/rules"
)

// Config configures the feeds that a Generator composes. See DefaultConfig.
type Config struct {
	CandidatesPerSource int `yaml:"candidates_per_source" default:"200" range:"100..1000" help:"number of best candidates per source that a chunk considers"`
	// HalfLife is the half-life of write-time scores; see package score. The application copies it from the
	// configuration of the fan-out. 0: unknown.
	HalfLife time.Duration `yaml:"-"`
	// ReactivationTimeout is limited to three quarters of the time that the visit has left.
	ReactivationTimeout time.Duration `yaml:"reactivation_timeout" default:"100ms" range:"0s..1m" help:"maximum time that a chunk for a reactivated user waits for backfills"`
	// Feeds are the rules by feed name, such as "home" and "plain".
	Feeds rules.Feeds `yaml:"feeds" help:"rules by feed name; each changes the default feed of its name, or else home"`

	// VisitLogShare is the share of the users whose visits are logged; see schemas.Sampled. The application copies it from
	// visit_log.share.
	VisitLogShare float64 `yaml:"-"`

	// HandoverWait is the maximum time from a visit's request for a chunk to the point where the visit may show the
	// chunk as new. After a partition moved from another process, the generator makes no chunks for this long. Then the
	// topic served has all items that visits showed as new from chunks of the previous owner. The generator reads the
	// end of that topic and makes the first chunk when the partition has applied it. This requires that the previous
	// owner makes no chunks after the brokers revoked the partition. 0: there is no other process. The application
	// copies it from feed.Config.Longest.
	HandoverWait time.Duration `yaml:"-"`

	// Sources are the external sources that each chunk requests candidates from.
	ExternalSources []ExternalSource `yaml:"external_sources" help:"external sources of candidates, called for each chunk"`
	// Model is the model that scores the best candidates of each chunk. The sum of its outputs, weighted by the feed's utility,
	// is added to the score.
	Model inference.Config `yaml:"model"`

	Embeddings EmbeddingsConfig `yaml:"embeddings"` // of pins, for feeds with spacing
}

// DefaultConfig returns the feeds of rules.Default, without external sources and without a model.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Feeds = rules.Default()
	c.Model.Timeout = 40 * time.Millisecond
	return c
}

// LooksUpEmbeddings reports whether a feed needs the embeddings of pins.
func (c Config) LooksUpEmbeddings() bool {
	for _, f := range c.Feeds {
		if f.Spacing.Strength > 0 {
			return true
		}
	}
	return false
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	p := settings.Problems{settings.Validate(c), c.Feeds.Validate()}
	if c.LooksUpEmbeddings() {
		p.Add(settings.Under("embeddings", settings.Validate(c.Embeddings)))
	}
	p.Add(c.validateExternal())
	return p.Err()
}
