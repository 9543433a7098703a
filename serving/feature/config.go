package feature

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config limits the cost of features. See DefaultConfig.
type Config struct {
	Deadline    time.Duration `yaml:"deadline" default:"500ms" range:"1ms..1m" help:"deadline of an answer; later values are listed in missing"`
	Concurrency int           `yaml:"concurrency" default:"8" range:"1..1024" help:"concurrent scans in this process"`
	MaxActions  int           `yaml:"max_actions" default:"100000" range:"1..10000000" help:"newest actions of a user that an answer reads"`
	MaxGroups   int           `yaml:"max_groups" default:"10000" range:"1..1000000" help:"groups of a value, or distinct values of distinct and top"`
	BreakAfter  int           `yaml:"break_after" default:"20" range:"1..1000000" help:"consecutive incomplete answers that open the circuit breaker"`
	BreakFor    time.Duration `yaml:"break_for" default:"1s" range:"10ms..10m" help:"how long the circuit breaker stays open before an answer probes the store"`
	ReloadEvery time.Duration `yaml:"reload_every" default:"2s" range:"100ms..1h" help:"interval at which the definitions file is checked for changes"`
	// Reads never return expired actions.
	SweepEvery time.Duration `yaml:"sweep_every" default:"1h" range:"1s..96h" help:"interval at which expired days are deleted"`
	CacheMaxMB int           `yaml:"cache_max_mb" default:"64" range:"1..65536" help:"block cache of the embedded store in MiB"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every value that is out of range.
func (c Config) Validate() error { return settings.Validate(c) }
