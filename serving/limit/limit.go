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
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures the limits. See DefaultConfig.
type Config struct {
	// Without authentication, Rate does not apply to addresses.
	Rate         float64 `yaml:"rate" default:"100" range:"0..1000000" help:"requests per second of a user and, with authentication, of an address without a token; 0: no limit"`
	Burst        int     `yaml:"burst" default:"200" range:"1..1000000" help:"requests of a user that may come at once after a pause"`
	ServiceRate  float64 `yaml:"service_rate" range:"0..1000000" help:"requests per second of a service; 0: no limit"`
	ServiceBurst int     `yaml:"service_burst" default:"1000" range:"1..1000000" help:"requests of a service that may come at once after a pause"`
	Callers      int     `yaml:"callers" default:"100000" range:"100..10000000" help:"callers that are remembered, with about 200 bytes each; the least recently seen is evicted"`
	// A rejection waits for a processor after these requests.
	Least int           `yaml:"least" default:"12" range:"1..1000000" help:"minimum of the limit of requests in flight per class, whatever the load"`
	Wait  time.Duration `yaml:"wait" default:"2ms" range:"100us..1s" help:"how long one in twenty goroutines may wait for a processor before the machine counts as overloaded"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }
