package api

import (
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
	Insecure bool `yaml:"insecure" help:"permit the server to listen on addresses beyond loopback without authentication"`
	// Other host names are rejected while authentication is off, because any site can make its own name resolve to this
	// address. IP addresses and localhost are always accepted.
	AllowedHosts []string     `yaml:"allowed_hosts" help:"host names, without port, that requests may use while authentication is off, in addition to those in http and advertise"`
	TLS          TLSConfig    `yaml:"tls"`
	Limits       limit.Config `yaml:"limits"`

	MaxHeaderBytes   settings.Bytes `yaml:"max_header_bytes" default:"16KiB" range:"1KiB..1MiB" help:"maximum size of the request line and the header"`
	MaxEventsBytes   settings.Bytes `yaml:"max_events_bytes" default:"8MiB" range:"64KiB..64MiB" help:"maximum size of the body of POST /v1/events"`
	MaxEvents        int            `yaml:"max_events" default:"20000" range:"1..1000000" help:"maximum number of lines of that body"`
	MaxInflightBytes settings.Bytes `yaml:"max_inflight_bytes" default:"64MiB" range:"max_events_bytes..4GiB" help:"maximum size of all bodies of POST /v1/events in flight, and separately of all other requests; further bodies get 503"`
	// One body of the maximum size is always possible.
	MaxCallerBytes   settings.Bytes `yaml:"max_caller_bytes" default:"16MiB" range:"64KiB..4GiB" help:"maximum part of these bytes for one caller; further bodies get 429"`
	MaxFeaturesBytes settings.Bytes `yaml:"max_features_bytes" default:"1MiB" range:"1KiB..16MiB" help:"maximum size of the body of POST /v1/features"`

	HeaderTimeout  time.Duration `yaml:"header_timeout" default:"5s" range:"100ms..5m" help:"timeout for reading a header"`
	ReadTimeout    time.Duration `yaml:"read_timeout" default:"30s" range:"100ms..5m" help:"timeout for reading a whole request"`
	WriteTimeout   time.Duration `yaml:"write_timeout" default:"1m" range:"100ms..5m" help:"timeout from the end of the header to the end of the answer, and for sending one event of a stream; at least read_timeout + publish_timeout"`
	IdleTimeout    time.Duration `yaml:"idle_timeout" default:"2m" range:"100ms..1h" help:"maximum time that a connection may be idle between requests"`
	PublishTimeout time.Duration `yaml:"publish_timeout" default:"15s" range:"100ms..5m" help:"timeout for the broker's acknowledgement of events"`

	// Under load, the limit is lower.
	MaxRequests        int           `yaml:"max_requests" default:"512" range:"1..1000000" help:"maximum number of requests in flight per scope; further requests get 503"`
	MaxCallerRequests  int           `yaml:"max_caller_requests" default:"64" range:"1..1000000" help:"maximum number of requests in flight per user, over all scopes; further requests get 429"`
	MaxStreams         int           `yaml:"max_streams" default:"256" range:"1..1000000" help:"maximum number of open event streams; further streams get 503"`
	MaxCallerStreams   int           `yaml:"max_caller_streams" default:"4" range:"1..1000000" help:"maximum number of open event streams per user, or per address without a token; further streams get 429"`
	MaxServiceStreams  int           `yaml:"max_service_streams" default:"64" range:"1..1000000" help:"maximum number of open event streams per service; further streams get 429"`
	StreamPollInterval time.Duration `yaml:"stream_poll_interval" default:"250ms" range:"10ms..1m" help:"interval at which a stream checks for new items"`

	// The bound is MaxShutdownTimeout.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" default:"10s" range:"100ms..20s" help:"maximum time for requests in flight when the server stops"`
}

// MaxShutdownTimeout is the maximum of Config.ShutdownTimeout. Writing the data of completed requests may take as long
// again, and the whole process stops within 45 s.
const MaxShutdownTimeout = 20 * time.Second

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	for _, host := range c.AllowedHosts {
		problems.Want(foreign.Name(host) && !strings.ContainsAny(host, ":/* "), "allowed_hosts: %q is not a host name without port", host)
	}
	work := c.ReadTimeout + c.PublishTimeout
	problems.Want(c.WriteTimeout >= work, "write_timeout: %s: want at least read_timeout + publish_timeout, %s, or their requests get no answer", c.WriteTimeout, work)
	problems.Add(settings.Under("tls", c.TLS.Validate()), settings.Under("limits", c.Limits.Validate()))
	return problems.Err()
}

// perCaller limits the share of each caller, and not their sum.
func perCaller(most int) *limit.Budget { return limit.NewBudget(math.MaxInt64, int64(most)) }

// budget returns the budget for bodies that have at most largest bytes each.
func (c Config) budget(largest settings.Bytes) *limit.Budget {
	return limit.NewBudget(int64(max(c.MaxInflightBytes, largest)), int64(max(c.MaxCallerBytes, largest)))
}
