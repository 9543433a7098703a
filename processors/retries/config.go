package retries

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config configures the retries of dead letters. See DefaultConfig.
type Config struct {
	Attempts   int           `yaml:"attempts"`    // automatic retries of a dead letter, 0-1000, default 8; 0: none
	FirstDelay time.Duration `yaml:"first_delay"` // delay of the first retry, 100ms-24h, default 30s
	Linear     int           `yaml:"linear"`      // failures up to which the delay grows by FirstDelay each; then it doubles. 1-1000, default 3
	MaxDelay   time.Duration `yaml:"max_delay"`   // longest delay, FirstDelay-168h, default 6h
	Settle     time.Duration `yaml:"settle"`      // delay until a retried dead letter that did not fail again is done, 1s-24h, default 1m

	Rate      float64 `yaml:"rate"`       // retries per second and kind, 0-10,000, default 10; 0: none, the dead letters wait
	TopicRate float64 `yaml:"topic_rate"` // retries per second and topic, 0.001-10,000, default 50

	KeepWaiting int `yaml:"keep_waiting"` // waiting dead letters per topic, 1-1,000,000, default 10,000; further ones are parked
	KeepBytes   int `yaml:"keep_bytes"`   // bytes of their keys and values per topic, 1 MiB-1 GiB, default 64 MiB; further ones are parked
	KeepDone    int `yaml:"keep_done"`    // done dead letters kept per topic, 0-100,000, default 1,000
	KeepParked  int `yaml:"keep_parked"`  // parked dead letters kept per topic, 1-1,000,000, default 10,000
}

// DefaultConfig returns the defaults that the field comments state. With them, the eighth retry of a dead letter follows 96
// minutes after the first failure.
func DefaultConfig() Config {
	return Config{
		Attempts: 8, FirstDelay: 30 * time.Second, Linear: 3, MaxDelay: 6 * time.Hour, Settle: time.Minute,
		Rate: 10, TopicRate: 50,
		KeepWaiting: 10_000, KeepBytes: 64 << 20, KeepDone: 1000, KeepParked: 10_000,
	}
}

// Validate reports every value that is out of bounds.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("attempts", c.Attempts, 0, 1000),
		bounds.Within("first_delay", c.FirstDelay, 100*time.Millisecond, 24*time.Hour),
		bounds.Within("linear", c.Linear, 1, 1000),
		bounds.Within("max_delay", c.MaxDelay, c.FirstDelay, 7*24*time.Hour),
		bounds.Within("settle", c.Settle, time.Second, 24*time.Hour),
		bounds.Within("rate", c.Rate, 0, 10_000),
		bounds.Within("topic_rate", c.TopicRate, 0.001, 10_000),
		bounds.Within("keep_waiting", c.KeepWaiting, 1, 1_000_000),
		bounds.Within("keep_bytes", c.KeepBytes, 1<<20, 1<<30),
		bounds.Within("keep_done", c.KeepDone, 0, 100_000),
		bounds.Within("keep_parked", c.KeepParked, 1, 1_000_000),
	)
}

// lookAgain returns how often stopped kinds are checked: FirstDelay, but at least 1s and at most 1m.
func (c Config) lookAgain() time.Duration { return min(max(c.FirstDelay, time.Second), time.Minute) }

// delay returns how long a dead letter waits after its n-th failure. n is at least 1.
func (c Config) delay(n int32) time.Duration {
	d := time.Duration(min(int(n), c.Linear)) * c.FirstDelay
	for i := c.Linear; i < int(n) && d < c.MaxDelay; i++ {
		d *= 2
	}
	return min(d, c.MaxDelay)
}
