// Package limit implements rate limits and load shedding: it rejects requests early that would otherwise be answered late.
//
// Callers has a token bucket per caller, so that one caller does not use the capacity of all. Gates limits the requests in
// flight per class. A fixed limit is wrong as soon as the load changes, so the limit follows the capacity of the machine.
// The signal is how long runnable goroutines wait for a processor, as measured by Go's scheduler. While they wait long,
// every additional request delays all others, including rejections. The limits of classes with many requests in flight then
// shrink by a fifth at a time. While they do not wait long, limits that were reached grow slowly (additive increase,
// multiplicative decrease, as in TCP).
//
// The latency of answers would be a worse signal: a store that hangs delays answers while processors are idle, and rejecting
// requests would not help. CockroachDB's admission control uses the same signal for the same reason.
package limit

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
)

// Config configures the limits. See DefaultConfig.
type Config struct {
	// Rate is how many requests per second a user may make. If authentication is enabled, it also applies to an address
	// without a token. Default 100, 0 to 1,000,000; 0 means no limit.
	Rate float64 `yaml:"rate"`
	// Burst is how many of these requests may come at once after a pause. Default 200, 1 to 1,000,000.
	Burst int `yaml:"burst"`
	// ServiceRate is how many requests per second a service may make. Default 0, which means no limit; up to 1,000,000.
	ServiceRate float64 `yaml:"service_rate"`
	// ServiceBurst is how many of these requests may come at once. Default 1000, 1 to 1,000,000.
	ServiceBurst int `yaml:"service_burst"`
	// Callers is how many callers are remembered, with about 200 bytes each. The least recently seen caller is evicted.
	// Default 100,000, 100 to 10 million.
	Callers int `yaml:"callers"`
	// Least is the minimum of the limit of requests in flight per class, whatever the load. Default 12, 1 to 1,000,000. A
	// rejection waits for a processor behind these requests.
	Least int `yaml:"least"`
	// Wait is how long one in twenty goroutines may wait for a processor before the machine counts as overloaded. Default 2
	// ms, 100 µs to 1 s.
	Wait time.Duration `yaml:"wait"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{Rate: 100, Burst: 200, ServiceBurst: 1000, Callers: 100_000, Least: 12, Wait: 2 * time.Millisecond}
}

// Validate reports every field that is out of bounds.
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
