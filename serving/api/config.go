package api

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// Config configures the server. See DefaultConfig.
type Config struct {
	// Set Insecure only if something else protects the address, such as a container whose port is published on loopback.
	Insecure bool `yaml:"insecure" help:"allow the server to listen on addresses beyond loopback without authentication"`
	// Other host names are rejected while authentication is off, because any site can make its own name resolve to this
	// address. IP addresses and localhost are always accepted.
	AllowedHosts []string     `yaml:"allowed_hosts" help:"host names, without port, that requests may use while authentication is off; those in http and advertise always may"`
	TLS          TLSConfig    `yaml:"tls"`
	Limits       limit.Config `yaml:"limits"`

	MaxHeaderBytes int   `yaml:"max_header_bytes" default:"16KiB" range:"1KiB..1MiB" help:"size of the request line and the header"`
	MaxEventsBytes int64 `yaml:"max_events_bytes" default:"8MiB" range:"64KiB..64MiB" help:"size of the body of POST /v1/events"`
	MaxEvents      int   `yaml:"max_events" default:"20000" range:"1..1000000" help:"lines of that body"`
	MaxBodiesBytes int64 `yaml:"max_bodies_bytes" default:"64MiB" range:"max_events_bytes..4GiB" help:"bytes of all bodies of POST /v1/events in flight, and separately of all other requests; further bodies are rejected with 503"`
	// One body of the maximum size is always possible.
	CallerBytes     int64 `yaml:"caller_bytes" default:"16MiB" range:"64KiB..4GiB" help:"one caller's part of these bytes; further bodies are rejected with 429"`
	MaxFeatureBytes int64 `yaml:"max_feature_bytes" default:"1MiB" range:"1KiB..16MiB" help:"size of the body of POST /v1/features"`

	HeaderTimeout  time.Duration `yaml:"header_timeout" default:"5s" range:"100ms..5m" help:"time to receive a header"`
	ReadTimeout    time.Duration `yaml:"read_timeout" default:"30s" range:"100ms..5m" help:"time to receive a whole request"`
	WriteTimeout   time.Duration `yaml:"write_timeout" default:"1m" range:"100ms..5m" help:"time from the end of the header to the end of the answer, or to send one event of a stream; at least read_timeout + publish_timeout"`
	IdleTimeout    time.Duration `yaml:"idle_timeout" default:"2m" range:"100ms..1h" help:"how long a connection may be idle between requests"`
	PublishTimeout time.Duration `yaml:"publish_timeout" default:"15s" range:"100ms..5m" help:"how long the broker may take to acknowledge events"`

	// Under load, the limit is lower.
	MaxRequests    int           `yaml:"max_requests" default:"512" range:"1..1000000" help:"requests in flight per scope; further ones are rejected with 503"`
	CallerRequests int           `yaml:"caller_requests" default:"64" range:"1..1000000" help:"requests in flight of one user, over all scopes; further ones are rejected with 429"`
	MaxStreams     int           `yaml:"max_streams" default:"256" range:"1..1000000" help:"open event streams; further ones are rejected with 503"`
	CallerStreams  int           `yaml:"caller_streams" default:"4" range:"1..1000000" help:"open event streams of one user, or of one address without a token; further ones are rejected with 429"`
	ServiceStreams int           `yaml:"service_streams" default:"64" range:"1..1000000" help:"open event streams of one service; further ones are rejected with 429"`
	StreamPoll     time.Duration `yaml:"stream_poll" default:"250ms" range:"10ms..1m" help:"interval at which a stream checks its count"`

	// The bound is MaxShutdownTimeout.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" default:"10s" range:"100ms..20s" help:"how long requests in flight may take when the server stops"`
}

// MaxShutdownTimeout is the maximum of Config.ShutdownTimeout. Writing the data of completed requests may take as long
// again, and the whole process stops within 45 s.
const MaxShutdownTimeout = 20 * time.Second

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Limits = limit.DefaultConfig()
	return c
}

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	problems := []error{settings.Validate(c)}
	for _, host := range c.AllowedHosts {
		if !foreign.Name(host) || strings.ContainsAny(host, ":/* ") {
			problems = append(problems, fmt.Errorf("allowed_hosts: %q is not a host name without port", host))
		}
	}
	if work := c.ReadTimeout + c.PublishTimeout; c.WriteTimeout < work {
		problems = append(problems, fmt.Errorf("write_timeout: %s: want at least read_timeout + publish_timeout, %s, "+
			"or their requests get no answer", c.WriteTimeout, work))
	}
	return errors.Join(append(problems, settings.Under("tls", c.TLS.Validate()), settings.Under("limits", c.Limits.Validate()))...)
}

// perCaller limits the share of each caller, and not their sum.
func perCaller(most int) *limit.Budget { return limit.NewBudget(math.MaxInt64, int64(most)) }

// budget returns the budget for bodies that have at most largest bytes each.
func (c Config) budget(largest int64) *limit.Budget {
	return limit.NewBudget(max(c.MaxBodiesBytes, largest), max(c.CallerBytes, largest))
}
