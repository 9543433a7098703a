package feature

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config limits the cost of features. See DefaultConfig.
type Config struct {
	Timeout            time.Duration `yaml:"timeout" default:"500ms" range:"1ms..1m" help:"timeout of an answer; later values are listed in missing"`
	MaxConcurrentScans int           `yaml:"max_concurrent_scans" default:"8" range:"1..1024" help:"maximum number of concurrent scans in the process"`
	MaxActions         int           `yaml:"max_actions" default:"100000" range:"1..10000000" help:"number of newest actions of a user that an answer reads"`
	MaxGroups          int           `yaml:"max_groups" default:"10000" range:"1..1000000" help:"maximum number of groups of a value, and of distinct values of distinct and top"`
	BreakerFailures    int           `yaml:"breaker_failures" default:"20" range:"1..1000000" help:"number of consecutive incomplete answers that opens the circuit breaker"`
	BreakerOpenTime    time.Duration `yaml:"breaker_open_time" default:"1s" range:"10ms..10m" help:"time that the circuit breaker stays open before an answer probes the store"`
	ReloadInterval     time.Duration `yaml:"reload_interval" default:"2s" range:"100ms..1h" help:"interval at which the definitions file is checked for changes"`
	SequenceRetention  time.Duration `yaml:"sequence_retention" default:"720h" range:"96h..87600h" help:"age at which actions are no longer part of sequences; Pinot keeps all actions for so long, and the embedded store the last 512 of each user"`
	// Reads never return expired actions.
	SweepInterval   time.Duration  `yaml:"sweep_interval" default:"1h" range:"1s..96h" help:"interval at which expired days are deleted"`
	BlockCacheBytes settings.Bytes `yaml:"block_cache_bytes" default:"64MiB" range:"1MiB..64GiB" help:"size of the embedded store's block cache"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// sequencesAfter returns the last time whose actions are no longer part of sequences.
func (c Config) sequencesAfter(now schemas.Micros) millis {
	return floor(now) - durationMillis(c.SequenceRetention)
}

// Validate reports every value that is out of range.
func (c Config) Validate() error { return settings.Validate(c) }
