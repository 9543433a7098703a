// Package limit refuses early what would otherwise be answered late.
//
// Callers have a token bucket each, so that one of them does not take what is there for all. Gates bound how many requests
// of a class are under way. A bound that is right at one time is wrong at another, so it follows what the machine can do,
// as one sees it from inside: how long goroutines that could run wait for a processor, which Go's scheduler measures. While
// they wait long, whoever is let in makes everybody later, those who are refused included, and the bounds of the classes
// that have much under way shrink by a fifth at a time; when they do not, the bounds that were met grow again, slowly
// (additive increase, multiplicative decrease, as TCP does).
//
// The latency of answers would be a worse sign: a store that hangs makes answers late while processors idle, and to refuse
// requests would help nobody. CockroachDB's admission control looks at the same thing, for the same reason.
package limit

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config bounds callers and what is under way. See DefaultConfig.
type Config struct {
	Rate         float64       `yaml:"rate"`          // requests a second of one user, or, where callers are asked who they are, of one address without a token, 0-1e6; 0: no bound; default 100
	Burst        int           `yaml:"burst"`         // of them at once after a rest, 1-1e6; default 200
	ServiceRate  float64       `yaml:"service_rate"`  // requests a second of one service, 0-1e6; 0: no bound; default 0
	ServiceBurst int           `yaml:"service_burst"` // of them at once, 1-1e6; default 1000
	Callers      int           `yaml:"callers"`       // remembered, 100 to 10 million, about 200 bytes each; who was longest away is forgotten; default 100,000
	Least        int           `yaml:"least"`         // requests of a class under way, whatever the load, 1-1e6; default 12: a refusal waits for a processor behind them
	Wait         time.Duration `yaml:"wait"`          // for a processor, of one in twenty goroutines, above which there is too much under way, 100µs-1s; default 2ms
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{Rate: 100, Burst: 200, ServiceBurst: 1000, Callers: 100_000, Least: 12, Wait: 2 * time.Millisecond}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	const most = 1_000_000
	return errors.Join(
		bounds.Within("rate", c.Rate, 0, most),
		bounds.Within("burst", c.Burst, 1, most),
		bounds.Within("service_rate", c.ServiceRate, 0, most),
		bounds.Within("service_burst", c.ServiceBurst, 1, most),
		bounds.Within("callers", c.Callers, 100, 10_000_000),
		bounds.Within("least", c.Least, 1, most),
		bounds.Within("wait", c.Wait, 100*time.Microsecond, time.Second),
	)
}
