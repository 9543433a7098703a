package retries

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures the retries of dead letters. See DefaultConfig.
type Config struct {
	Attempts   int           `yaml:"attempts" default:"8" range:"0..1000" help:"automatic retries of a dead letter; 0: none"`
	FirstDelay time.Duration `yaml:"first_delay" default:"30s" range:"100ms..24h" help:"delay of the first retry"`
	Linear     int           `yaml:"linear" default:"3" range:"1..1000" help:"failures up to which the delay grows by first_delay each; then it doubles"`
	MaxDelay   time.Duration `yaml:"max_delay" default:"6h" range:"first_delay..168h" help:"longest delay"`
	Settle     time.Duration `yaml:"settle" default:"1m" range:"1s..24h" help:"time without another failure after which a retried dead letter is done"`

	Rate      float64 `yaml:"rate" default:"10" range:"0..10000" help:"retries per second and kind; 0: none, the dead letters wait"`
	TopicRate float64 `yaml:"topic_rate" default:"50" range:"0.001..10000" help:"retries per second and topic"`

	KeepWaiting int `yaml:"keep_waiting" default:"10000" range:"1..1000000" help:"waiting dead letters per topic; further ones are parked"`
	KeepBytes   int `yaml:"keep_bytes" default:"64MiB" range:"1MiB..1GiB" help:"bytes of their keys and values per topic; further ones are parked"`
	KeepDone    int `yaml:"keep_done" default:"1000" range:"0..100000" help:"done dead letters kept per topic"`
	KeepParked  int `yaml:"keep_parked" default:"10000" range:"1..1000000" help:"parked dead letters kept per topic"`
}

// DefaultConfig returns the defaults of the tags. With them, the eighth retry of a dead letter follows 96 minutes after the
// first failure.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every value that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }

// recheckInterval returns how often stopped kinds are checked: FirstDelay, but at least 1s and at most 1m.
func (c Config) recheckInterval() time.Duration {
	return min(max(c.FirstDelay, time.Second), time.Minute)
}

// delay returns the delay of the retry after the n-th failure. n is at least 1.
func (c Config) delay(n int32) time.Duration {
	d := time.Duration(min(int(n), c.Linear)) * c.FirstDelay
	for i := c.Linear; i < int(n) && d < c.MaxDelay; i++ {
		d *= 2
	}
	return min(d, c.MaxDelay)
}
