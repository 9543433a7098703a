package feature

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config limits the cost of features. See DefaultConfig.
type Config struct {
	Deadline    time.Duration `yaml:"deadline"`     // deadline of an answer: 1 ms to 1 m, default 500 ms; later values are listed in missing
	Concurrency int           `yaml:"concurrency"`  // concurrent scans in this process, 1 to 1024, default 8
	MaxActions  int           `yaml:"max_actions"`  // newest actions of a user that an answer reads, 1 to 10,000,000, default 100,000
	MaxGroups   int           `yaml:"max_groups"`   // groups of a value, or distinct values of distinct and top, 1 to 1,000,000, default 10,000
	BreakAfter  int           `yaml:"break_after"`  // consecutive incomplete answers that open the circuit breaker, 1 to 1,000,000, default 20
	BreakFor    time.Duration `yaml:"break_for"`    // how long the breaker stays open before an answer probes the store, 10 ms to 10 m, default 1 s
	ReloadEvery time.Duration `yaml:"reload_every"` // how often the definitions file is checked for changes, 100 ms to 1 h, default 2 s
	SweepEvery  time.Duration `yaml:"sweep_every"`  // how often expired days are deleted, 1 s to 96 h, default 1 h; reads never return expired actions
	CacheMaxMB  int           `yaml:"cache_max_mb"` // block cache of the embedded store in MiB, 1 to 65,536, default 64
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Deadline:    500 * time.Millisecond,
		Concurrency: 8,
		MaxActions:  100_000,
		MaxGroups:   10_000,
		BreakAfter:  20,
		BreakFor:    time.Second,
		ReloadEvery: 2 * time.Second,
		SweepEvery:  time.Hour,
		CacheMaxMB:  64,
	}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("deadline", c.Deadline, time.Millisecond, time.Minute),
		bounds.Within("concurrency", c.Concurrency, 1, 1024),
		bounds.Within("max_actions", c.MaxActions, 1, 10_000_000),
		bounds.Within("max_groups", c.MaxGroups, 1, 1_000_000),
		bounds.Within("break_after", c.BreakAfter, 1, 1_000_000),
		bounds.Within("break_for", c.BreakFor, 10*time.Millisecond, 10*time.Minute),
		bounds.Within("reload_every", c.ReloadEvery, 100*time.Millisecond, time.Hour),
		bounds.Within("sweep_every", c.SweepEvery, time.Second, Kept),
		bounds.Within("cache_max_mb", c.CacheMaxMB, 1, 1<<16),
	)
}
