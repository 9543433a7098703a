package layout

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config holds the caps of the pools. See DefaultConfig.
type Config struct {
	// Hidden candidates have a separate cap of the same size.
	MaxCandidates int `yaml:"max_candidates" default:"500" range:"10..1000000" help:"maximum number of visible candidates per user and source"`
	MaxSources    int `yaml:"max_sources" default:"16" range:"3..100" help:"maximum number of sources per user, including external sources"`
	// MaxFollowees is the maximum number of effective follows per user. The follows with the latest event times are over the cap
	// and deliver nothing until others end. A configuration file does not contain it, because it must not change while rows
	// exist. At least 1.
	MaxFollowees int `yaml:"-" default:"10000"`
	MaxSeenPins  int `yaml:"max_seen_pins" default:"100000" range:"1000..1000000" help:"maximum number of seen pins stored per user"`
	// The entries serve responses without the feed store.
	MaxRecentItems int `yaml:"max_recent_items" default:"200" range:"100..1000" help:"number of newest materialized items stored per user"`

	MaxPinAge time.Duration `yaml:"max_pin_age" range:"0|1m.." help:"age at which a pin is no longer a candidate; 0: never"`
	// The time counts by arrival from the last visit or, without any visit, from the first follow. The followees of an
	// inactive user deliver nothing new until the next visit. If InactiveAfter changes to 0, an inactive user stays
	// inactive until the next visit or rebuild. If it changes from 0, the time of an active user counts from the next
	// visit, follow or rebuild.
	InactiveAfter time.Duration `yaml:"inactive_after" default:"720h" range:"0|1s.." help:"time without a visit after which a user is inactive; 0: never"`
}

// DefaultConfig returns the defaults of the tags.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error { return settings.Validate(c) }
