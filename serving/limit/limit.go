// Package limit implements rate limits and load shedding: it rejects requests early that would otherwise be answered late.
//
// Callers has a token bucket per caller, so that one caller does not use the capacity of all. Gates limits the requests in
// flight per class. A fixed limit is wrong as soon as the load changes, so the limit follows the capacity of the machine.
// The signal is how long runnable goroutines wait for a processor, as measured by Go's scheduler. While they wait long,
// every additional request delays all others, including rejections. The limits of classes with many requests in flight then
// shrink by a fifth at a time. While they do not wait long, limits that were reached grow slowly (additive increase,
// multiplicative decrease, as in TCP).
//
// The latency of answers would be a worse signal: a store that hangs delays answers while processors are idle, and
// rejecting requests would not help. CockroachDB's admission control uses the same signal for the same reason.
package limit

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures the limits. See DefaultConfig.
type Config struct {
	// Without authentication, Rate does not apply to addresses.
	UserRate     float64 `yaml:"user_rate" default:"100" range:"0..1000000" help:"requests per second of a user and, with authentication, of an address without a token; 0: no limit"`
	UserBurst    int     `yaml:"user_burst" default:"200" range:"1..1000000" help:"maximum number of requests of a user at once, after a pause"`
	ServiceRate  float64 `yaml:"service_rate" range:"0..1000000" help:"requests per second of a service; 0: no limit"`
	ServiceBurst int     `yaml:"service_burst" default:"1000" range:"1..1000000" help:"maximum number of requests of a service at once, after a pause"`
	MaxCallers   int     `yaml:"max_callers" default:"100000" range:"100..10000000" help:"maximum number of callers tracked, with about 200 bytes each; the least recently seen is evicted"`
	// A rejection waits for a processor after these requests.
	MinConcurrency       int           `yaml:"min_concurrency" default:"16" range:"1..1000000" help:"minimum of the limit of requests in flight per class, at any load"`
	MaxSchedulingLatency time.Duration `yaml:"max_scheduling_latency" default:"2ms" range:"100us..1s" help:"95th percentile of the goroutine scheduling latency above which the machine counts as overloaded"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }
