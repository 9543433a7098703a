// Package api is the HTTP server: feeds, pools, lists, features and events in and out as JSON, and errors as problem
// documents. The OpenAPI document at /v1/openapi.json describes every call; a test compares it with the routes.
//
// The server can be exposed to untrusted clients. Everything that a request can use has a limit: header, body, time,
// requests in flight, and requests per caller. A request above a limit is rejected at once with the reason. The table of
// routes states which callers may make each call. Callers authenticate by bearer tokens, see package auth. Without
// authentication, the server listens only on loopback addresses, unless the configuration says that something else
// protects it.
package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// Deps are the dependencies of a Server. They are required unless stated otherwise. A call whose dependency is nil has no
// route: a process that only computes has only the routes for its state.
type Deps struct {
	Feed        Feed                      // nil: none
	Features    Features                  // nil: none
	Insights    Insights                  // nil: none
	Publisher   Publisher                 // nil: none
	Known       KnownUsers                // nil: deletes of users are rejected
	Directory   Directory                 // nil: none
	Config      func(bool) (any, error)   // GET /v1/config, all values or only the changed ones, encoded as JSON; nil: no route
	DeadLetters DeadLetters               // nil: none
	Dictionary  Dictionary                // nil: none
	Verbs       func() schemas.Verbs      // the present verbs of actions, for validation
	Status      func(context.Context) any // GET /v1/status, encoded as JSON
	Ready       func() []string           // why the process is not ready; empty: it is ready
	Console     http.Handler              // GET / and below; nil: there is none
	Peer        http.Handler              // handles requests of other processes, below peers.Path; nil: no route
	Auth        Verifier                  // verifies tokens; nil: no authentication
	Scrape      ScrapeCheck               // checks the static token of the metrics, with authentication; nil: none
	Peers       PeerCheck                 // authenticates other processes; nil: no authentication
	Tracer      *tracing.Tracer           // traces requests; nil: no traces
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
	compress func(http.Handler) http.HandlerFunc
	metrics  *measures

	callerStreams  *limit.Budget // streams by user or address
	serviceStreams *limit.Budget // streams by service
	userRequests   *limit.Budget // requests in flight by user
	lines          *limit.Budget // bytes of bodies of events
	objects        *limit.Budget // bytes of other bodies

	auditLines *rate.Limiter // audit lines of requests without a valid token
	omitted    atomic.Int64  // of these, since one was last logged
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
	if deps.Now == nil {
		deps.Now = time.Now
	}
	s := &Server{
		cfg: cfg, deps: deps, log: cmp.Or(deps.Log, slog.New(slog.DiscardHandler)),
		gates:          limit.NewGates(cfg.Limits, cfg.MaxRequests, cfg.fixedLimits(), limit.SchedulerWaits(), time.Now),
		callers:        limit.NewCallers(cfg.Limits, deps.Now),
		callerStreams:  perCaller(cfg.MaxCallerStreams),
		serviceStreams: perCaller(cfg.MaxServiceStreams),
		userRequests:   perCaller(cfg.MaxCallerRequests),
		lines:          cfg.budget(cfg.MaxEventsBytes),
		objects:        cfg.budget(cfg.MaxFeaturesBytes),
		auditLines:     rate.NewLimiter(linesPerSecond, linesPerSecond),
	}
	var err error
	if s.compress, err = compressor(); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	if s.cert, err = loadCertificate(cfg.TLS, s.log); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	s.warn(addr)
	if s.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("http server: listen on %s: %w", addr, err)
	}
	s.addr = s.listener.Addr().String()
	if s.metrics, err = newMeasures(deps.Metrics); err != nil {
		return nil, errors.Join(fmt.Errorf("http server: %w", err), s.Close())
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
		return errors.New("callers are authenticated and other processes of the deployment are not: set peers.secret_file, the same for all processes")
	}
	if e.Callers || cfg.Insecure || secure.OnLoopback(host) {
		return nil
	}
	return fmt.Errorf("address %q is not a loopback address, and authentication is disabled: set auth.jwks or auth.secret_file, "+
		"listen on 127.0.0.1, or, if a proxy or firewall protects the address, set api.insecure", addr)
}

// warn logs what unauthenticated or eavesdropping clients could do.
func (s *Server) warn(addr string) {
	host, _, _ := net.SplitHostPort(addr) // checked
	if s.deps.Auth == nil {
		s.log.Warn("authentication is disabled: anyone who can reach this address can read every feed and publish events; see auth.secret_file", "address", addr)
	} else if s.cert == nil && !secure.OnLoopback(host) {
		s.log.Warn("tokens are sent over plain HTTP, where others on the network can read them; see api.tls, unless a proxy has TLS", "address", addr)
	}
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
		return errors.Join(fmt.Errorf("stop http server: requests still in flight: %w", err), server.Close())
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
		MaxHeaderBytes:    int(s.cfg.MaxHeaderBytes),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // broken connections need no attention
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), stoppingKey{}, stopping)
		},
	}
}

// stoppingKey is the context key of the channel that is closed when the server starts to shut down. The context itself
// stays valid: requests in flight are completed, and only streams end at once.
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

// TLSConfig is the server's certificate. The files are reloaded when they change.
type TLSConfig struct {
	CertFile string `yaml:"cert_file" help:"PEM file with the certificate chain, the server's own certificate first; empty: plain HTTP"`
	KeyFile  string `yaml:"key_file" help:"PEM file with the key of the certificate"`
}

// Validate returns an error for a certificate without a key, and for a key without a certificate.
func (c TLSConfig) Validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("cert_file, key_file: both or neither are required")
	}
	return nil
}

// certificate is the server's certificate. Each handshake reads the files, so a replaced pair is served without a restart.
type certificate struct {
	cfg  TLSConfig
	log  *slog.Logger
	last atomic.Pointer[tls.Certificate] // the last pair that was read
}

// loadCertificate loads the files, or returns nil if none are configured.
func loadCertificate(cfg TLSConfig, log *slog.Logger) (*certificate, error) {
	if cfg.CertFile == "" {
		return nil, nil
	}
	c := &certificate{cfg: cfg, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return c, nil
}

// load returns an error if the files do not match.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cfg.CertFile, c.cfg.KeyFile)
	if err == nil {
		c.last.Store(&pair)
	}
	return err
}

// get returns the pair for a handshake. If the files cannot be loaded, it returns the previous pair: perhaps only one of them
// has been replaced so far.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := c.load(); err != nil {
		c.log.Warn("cannot reload the certificate; the previous one stays in use", "error", err)
	}
	return c.last.Load(), nil
}

// settings returns the TLS configuration of the listener.
func (c *certificate) settings() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}
