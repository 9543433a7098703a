package retries

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures the retries of dead letters. See DefaultConfig.
type Config struct {
	MaxAttempts    int           `yaml:"max_attempts" default:"8" range:"0..1000" help:"maximum number of automatic retries of a dead letter; 0: no retries"`
	InitialDelay   time.Duration `yaml:"initial_delay" default:"30s" range:"100ms..24h" help:"delay of the first retry"`
	LinearAttempts int           `yaml:"linear_attempts" default:"3" range:"1..1000" help:"number of failures up to which the delay grows by initial_delay each; then it doubles"`
	MaxDelay       time.Duration `yaml:"max_delay" default:"6h" range:"initial_delay..168h" help:"maximum delay"`
	DoneAfter      time.Duration `yaml:"done_after" default:"1m" range:"1s..24h" help:"time without another failure after which a retried dead letter is done"`

	KindRate  float64 `yaml:"kind_rate" default:"10" range:"0..10000" help:"retries per second of each kind; 0: no retries, the dead letters wait"`
	TopicRate float64 `yaml:"topic_rate" default:"50" range:"0.001..10000" help:"retries per second of each topic"`

	MaxWaiting      int            `yaml:"max_waiting" default:"10000" range:"1..1000000" help:"maximum number of waiting dead letters per topic; further ones are parked"`
	MaxWaitingBytes settings.Bytes `yaml:"max_waiting_bytes" default:"64MiB" range:"1MiB..1GiB" help:"maximum size of their keys and values per topic; further ones are parked"`
	MaxDone         int            `yaml:"max_done" default:"1000" range:"0..100000" help:"number of done dead letters stored per topic"`
	MaxParked       int            `yaml:"max_parked" default:"10000" range:"1..1000000" help:"number of parked dead letters stored per topic"`
}

// DefaultConfig returns the defaults of the tags. With them, the eighth retry of a dead letter follows 96 minutes after the
// first failure.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every value that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }

// recheckInterval returns how often stopped kinds are checked: InitialDelay, but at least 1s and at most 1m.
func (c Config) recheckInterval() time.Duration {
	return min(max(c.InitialDelay, time.Second), time.Minute)
}

// delay returns the delay of the retry after the n-th failure. n is at least 1.
func (c Config) delay(n int32) time.Duration {
	d := time.Duration(min(int(n), c.LinearAttempts)) * c.InitialDelay
	for i := c.LinearAttempts; i < int(n) && d < c.MaxDelay; i++ {
		d *= 2
	}
	return min(d, c.MaxDelay)
}
