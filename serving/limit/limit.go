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
	// Rate is how many requests a second one user may make, or, where callers are asked who they are, one address without a
	// token. Default 100, 0 to 1,000,000; 0: no bound.
	Rate float64 `yaml:"rate"`
	// Burst is how many of them may come at once after a rest, default 200, 1 to 1,000,000.
	Burst int `yaml:"burst"`
	// ServiceRate is how many requests a second one service may make, default 0: no bound, to 1,000,000.
	ServiceRate float64 `yaml:"service_rate"`
	// ServiceBurst is how many of them may come at once, default 1000, 1 to 1,000,000.
	ServiceBurst int `yaml:"service_burst"`
	// Callers is how many callers are remembered, in about 200 bytes each; who was longest away is forgotten. Default 100,000,
	// 100 to 10 million.
	Callers int `yaml:"callers"`
	// Least is how many requests of a class may be under way whatever the load, default 12, 1 to 1,000,000. A refusal waits
	// for a processor behind them.
	Least int `yaml:"least"`
	// Wait is how long one in twenty goroutines may wait for a processor; beyond it too much is under way. Default 2 ms, 100 µs
	// to 1 s.
	Wait time.Duration `yaml:"wait"`
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
