package layout

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config holds the caps of the pools. See DefaultConfig.
type Config struct {
	// Cap is the maximum number of visible candidates per user and source, and separately of hidden ones; default 500, 10 to
	// 1,000,000.
	Cap int `yaml:"cap"`
	// Sources is the maximum number of sources per user, including external ones; default 16, 3 to 100.
	Sources int `yaml:"sources"`
	// MaxFollowees is the maximum number of a user's follows that count, 1 to 100,000; 0 means the default, 10,000. The
	// follows with the latest event times are over the cap and deliver nothing until others end. A change takes effect with
	// the user's next follow or unfollow.
	MaxFollowees int `yaml:"max_followees"`
	// SeenCap is the maximum number of seen pins that are remembered per user; default 100,000, 1000 to 1,000,000.
	SeenCap int `yaml:"seen_cap"`
	// Frozen is how many of a user's newest materialized entries a chunk contains; default 200, 100 to 1000.
	Frozen int `yaml:"frozen"`
	// Expiry is the age at which a pin stops being a candidate, at least 1m; default 0: candidates do not expire.
	Expiry time.Duration `yaml:"expiry"`

	// InactiveAfter is the time without a visit after which a user is inactive; default 30 days, at least 1s, or 0 for never. It
	// counts by arrival time from the last visit or, without any visit, from the first follow. The followees of an inactive
	// user deliver nothing new until the next visit. If InactiveAfter changes to 0, an inactive user stays inactive until the
	// next visit or rebuild. If it changes from 0, the time of an active user counts from the next visit, follow or rebuild.
	InactiveAfter time.Duration `yaml:"inactive_after"`
}

// DefaultConfig returns the defaults: pools of 500 candidates, 16 sources, 10,000 followees, 100,000 seen pins and 200
// materialized entries per user, no expiry, inactive after 30 days.
func DefaultConfig() Config {
	return Config{Cap: 500, Sources: 16, MaxFollowees: 10_000, SeenCap: 100_000, Frozen: 200, InactiveAfter: 30 * 24 * time.Hour}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{
		bounds.Within("cap", c.Cap, 10, 1_000_000),
		bounds.Within("sources", c.Sources, 3, 100),
		bounds.Within("max_followees", c.MaxFollowees, 0, 100_000),
		bounds.Within("seen_cap", c.SeenCap, 1000, 1_000_000),
		bounds.Within("frozen", c.Frozen, 100, 1000),
	}
	if c.Expiry != 0 && c.Expiry < time.Minute {
		errs = append(errs, fmt.Errorf("expiry: %s: want at least 1m, or 0 for none", c.Expiry))
	}
	if c.InactiveAfter != 0 && c.InactiveAfter < time.Second {
		errs = append(errs, fmt.Errorf("inactive_after: %s: want at least 1s, or 0 for never", c.InactiveAfter))
	}
	return errors.Join(errs...)
}
