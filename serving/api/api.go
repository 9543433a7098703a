// Package api is the HTTP server: feeds, pools, lists, features and events in and out as JSON, and errors as problem
// documents. The OpenAPI document at /v1/openapi.json describes every call; a test compares it with the routes.
//
// The server can be exposed to untrusted clients. Everything that a request can use has a limit: header, body, time,
// requests in flight, and requests per caller. A request above a limit is rejected at once with the reason. The table of
// routes states who may make each call. Callers authenticate by bearer tokens, see package auth. Without authentication, the
// server listens only on loopback addresses, unless the configuration says that something else protects it.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
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
			"or what they bring is not answered", c.WriteTimeout, work))
	}
	return errors.Join(append(problems, settings.Under("tls", c.TLS.Validate()), settings.Under("limits", c.Limits.Validate()))...)
}

// budget returns the budget for bodies that have at most largest bytes each.
func (c Config) budget(largest int64) *limit.Budget {
	return limit.NewBudget(max(c.MaxBodiesBytes, largest), max(c.CallerBytes, largest))
}

// Feed answers visits, pages and lists, as feed.Service does.
type Feed interface {
	Visit(ctx context.Context, user schemas.UserID, feed string, limit int) (feed.Page, error)
	Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (feed.Page, error)
	Waiting(ctx context.Context, user schemas.UserID) (int, error)
	List(ctx context.Context, followee schemas.Followee, viewer schemas.UserID, cursor string, limit int) (feed.ListPage, error)
	RelatedPins(ctx context.Context, pin schemas.PinID, viewer schemas.UserID, limit int) (feed.RelatedPins, error)
	RelatedInterests(ctx context.Context, interest schemas.InterestID, limit int) (feed.RelatedInterests, error)
	Why(ctx context.Context, user schemas.UserID, feed string, pin schemas.PinID, masked bool) (*schemas.Why, error)
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

// Features answers requests for features, as feature.Service does.
type Features interface {
	Answer(ctx context.Context, req feature.Request) (feature.Answer, error)
	Attributes(ctx context.Context, req feature.AttributesRequest) (feature.AttributesAnswer, error)
	Try(ctx context.Context, req feature.TryRequest) (feature.TryAnswer, error)
	Definitions() []feature.Definition
}

// Publisher publishes events.
type Publisher interface {
	// PublishAs returns nil when all events are acknowledged. It records deletes with the operator who sent them.
	PublishAs(ctx context.Context, operator string, lines []schemas.Line) error
}

// Deps are the dependencies of a Server. They are required unless stated otherwise. A call whose dependency is nil has no
// route: a process that only computes has only the routes for its state.
type Deps struct {
	Feed        Feed                      // nil: none
	Features    Features                  // nil: none
	Insights    Insights                  // nil: none
	Publisher   Publisher                 // nil: none
	Known       KnownUsers                // nil: deletes of users are rejected
	DeadLetters DeadLetters               // nil: none
	Dictionary  Dictionary                // nil: none
	Verbs       schemas.Verbs             // of actions, for validation
	Status      func(context.Context) any // GET /v1/status, encoded as JSON
	Ready       func() []Lack             // what is not ready; empty: ready
	Console     http.Handler              // GET / and below; nil: there is none
	Peer        http.Handler              // handles requests of other processes, below peers.Path; nil: no route
	Auth        Verifier                  // verifies tokens; nil: no authentication
	Scrape      ScrapeCheck               // checks the static token of the metrics, with authentication; nil: none
	Peers       PeerCheck                 // authenticates other processes; nil: no authentication
	Tracer      *tracing.Tracer           // traces requests; nil: no traces
	FromCallers bool                      // callers decide by traceparent whether their requests are traced
	Metrics     prometheus.Registerer     // for the server's own metrics
	Gatherer    prometheus.Gatherer       // GET /metrics
	Now         func() time.Time          // nil: time.Now
	Log         *slog.Logger              // nil: none
}

// Server is the HTTP server.
type Server struct {
	cfg      Config
	deps     Deps
	log      *slog.Logger
	addr     string
	listener net.Listener // until a Run uses it
	gates    *limit.Gates
	callers  *limit.Callers
	cert     *certificate // nil: plain HTTP
	pack     func(http.Handler) http.HandlerFunc
	streams  *semaphore.Weighted
	held     *limit.Held // streams by user or address
	services *limit.Held // streams by service
	asking   *limit.Held // requests in flight, by user
	scrapes  *semaphore.Weighted
	trials   *semaphore.Weighted
	lines    *limit.Budget // for bodies of events
	objects  *limit.Budget // for other bodies
	refusals auditLines
	metrics  *metrics
}

// Listen validates the configuration and opens the address, so that a port in use is an error at the start. Run serves
// requests.
func Listen(addr string, cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	exposure := Exposure{Callers: deps.Auth != nil, Peer: deps.Peer != nil, Peers: deps.Peers != nil}
	if err := CheckExposure(addr, cfg, exposure); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	s := &Server{
		cfg: cfg, deps: deps, log: deps.Log,
		gates:   limit.NewGates(cfg.Limits, cfg.MaxRequests, nil, nil),
		callers: limit.NewCallers(cfg.Limits, deps.Now),
		streams: semaphore.NewWeighted(int64(cfg.MaxStreams)),
		held:    limit.NewHeld(cfg.CallerStreams), services: limit.NewHeld(cfg.ServiceStreams),
		asking:  limit.NewHeld(cfg.CallerRequests),
		scrapes: semaphore.NewWeighted(maxScrapes),
		trials:  semaphore.NewWeighted(maxTrials),
		lines:   cfg.budget(cfg.MaxEventsBytes),
		objects: cfg.budget(cfg.MaxFeatureBytes),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.deps.Now == nil {
		s.deps.Now = time.Now
	}
	var err error
	if s.pack, err = packer(); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	if err := s.loadTLS(); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	s.warn(addr)
	if s.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("http server: listen on %s: %w", addr, err)
	}
	s.addr = s.listener.Addr().String()
	if s.metrics, err = newMetrics(deps.Metrics); err != nil {
		return nil, errors.Join(fmt.Errorf("http server: register metrics: %w", err), s.Close())
	}
	return s, nil
}

// Exposure describes which senders of requests to an address are authenticated.
type Exposure struct {
	Callers bool // callers need tokens
	Peer    bool // other processes of the deployment send requests to the address
	Peers   bool // those processes are authenticated
}

// CheckExposure returns an error if other machines can reach the address while callers are not authenticated. It also
// returns an error if callers are authenticated but the other processes of the deployment are not.
func CheckExposure(addr string, cfg Config, e Exposure) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q is not host:port", addr)
	}
	if e.Callers && e.Peer && !e.Peers {
		return errors.New("callers are asked who they are, but not those who say they are other processes of the product: " +
			"set peers.secret_file, the same for all of them")
	}
	if e.Callers || cfg.Insecure || onLoopback(host) {
		return nil
	}
	return fmt.Errorf("address %q can be reached from other machines, and callers are not asked who they are: "+
		"set auth.jwks or auth.secret_file, listen on 127.0.0.1, or, if something else guards the address, set api.insecure", addr)
}

func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// warn logs what unauthenticated or eavesdropping clients could do.
func (s *Server) warn(addr string) {
	host, _, _ := net.SplitHostPort(addr) // checked
	if s.deps.Auth == nil {
		s.log.Warn("NOBODY IS ASKED WHO THEY ARE: whoever reaches the address can read every feed and publish events; see auth.secret_file", "address", addr)
	} else if s.cert == nil && !onLoopback(host) {
		s.log.Warn("tokens come over plain HTTP: whoever is between can take them; see api.tls, unless a proxy has TLS", "address", addr)
	}
}

// loadTLS loads the certificate, if one is configured.
func (s *Server) loadTLS() (err error) {
	if s.cfg.TLS.CertFile == "" {
		return nil
	}
	s.cert, err = loadCertificate(s.cfg.TLS, func(err error) {
		s.log.Warn("a changed certificate cannot be taken over; the one before holds", "error", err)
	})
	return err
}

// Bounds returns the current limit of requests in flight of each scope; see package limit.
func (s *Server) Bounds() map[string]int { return s.gates.Bounds() }

// Scheme returns the scheme of the server's URLs, http or https.
func (s *Server) Scheme() string {
	if s.cert != nil {
		return "https"
	}
	return "http"
}

// Addr returns the address that the server listens on, with the actual port if port 0 was configured.
func (s *Server) Addr() string { return s.addr }

// Run serves requests until ctx ends. It then accepts no new requests, ends the streams, and waits at most ShutdownTimeout
// for the requests in flight. It may be called again after it has returned, and then listens on the same address.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.take()
	if err != nil {
		return err
	}
	server := s.server(ctx.Done())
	served := make(chan error, 1)
	go func() { served <- s.serve(server, listener) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve http on %s: %w", s.addr, err), server.Close())
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	err = server.Shutdown(stop)
	<-served
	if err != nil {
		return errors.Join(fmt.Errorf("stop http server: requests still under way: %w", err), server.Close())
	}
	return nil
}

func (s *Server) serve(server *http.Server, listener net.Listener) error {
	if s.cert == nil {
		return server.Serve(listener)
	}
	server.TLSConfig = s.cert.settings()
	return server.ServeTLS(listener, "", "")
}

// take returns the listener of Listen to the first Run, and a new one to later calls.
func (s *Server) take() (net.Listener, error) {
	listener := s.listener
	s.listener = nil
	if listener != nil {
		return listener, nil
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return nil, fmt.Errorf("http server: listen on %s again: %w", s.addr, err)
	}
	return listener, nil
}

// server returns an http.Server with all limits of a connection. stopping is closed when the shutdown starts.
func (s *Server) server(stopping <-chan struct{}) *http.Server {
	return &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		ReadTimeout:       s.cfg.ReadTimeout,
		WriteTimeout:      s.cfg.WriteTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // broken connections need no attention
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), stoppingKey{}, stopping)
		},
	}
}

// stoppingKey is the context key of the channel that is closed when the server starts to shut down. The context itself stays
// valid: requests in flight are completed, and only streams end at once.
type stoppingKey struct{}

func stopping(r *http.Request) <-chan struct{} {
	c, _ := r.Context().Value(stoppingKey{}).(<-chan struct{})
	return c
}

// Close closes the address if Run was never called. It must not be called while Run is running.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	if err := s.listener.Close(); err != nil {
		return fmt.Errorf("close http server: %w", err)
	}
	return nil
}
