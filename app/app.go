// Package app assembles the program from the other packages: one configuration, and the wiring of all roles. Commands
// (package internal/cli) and embedding programs use it.
//
// wiring.go and wiring_serving.go open one part after the other. roles.go lists the parts of each role. If a part depends
// on another, this package passes it as a small interface.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// App is the part of the pipeline that a process runs: all of it, or some of its roles. Call Open, then Run. Call Close
// even if Run was not called.
type App struct {
	cfg        Config // at the start; see currentVerbs
	file       ConfigFile
	current    atomic.Pointer[Config] // cfg with the keys of the last reload
	reloaded   []*reload.File
	extensions generator.Extensions // of the embedding program
	log        *slog.Logger
	metrics    *prometheus.Registry

	tracer    *tracing.Tracer  // nil: no tracing
	broker    *embedded.Server // nil: the brokers are external
	kafka     topics.Kafka
	health    *brokerHealth
	streams   *topics.Streams
	publisher *topics.Publisher
	deleted   topics.DeletedUsers
	tables    []globalTable
	ends      *topics.Log // end offsets of topics
	groups    []*rows.Runner
	services  peers.Local          // of the groups in this process, or all by peers
	peers     *peers.Client        // nil: this process calls no others
	local     *generator.Generator // of the local pools; nil: this process has none
	decided   *topics.GlobalTable[schemas.InterestDecision]
	features  *feature.Service // nil: not served by this process
	store     feed.Store       // for reading feeds; nil: this process reads none
	storeLag  *topics.StoreLag // of two feed stores; nil: there is one
	sinks     []feedSink       // for writing feeds
	clusters  []*cassandra.Store
	stores    []func() status.Store
	optional  []string      // components that readiness does not require
	feed      *feed.Service // nil: not served by this process
	server    *api.Server
	verifier  *auth.Verifier // of callers' tokens; nil: authentication is disabled

	// A cut-over replaces the generation of the pools that this process started with.
	generations *poolGenerations // nil: this process runs no pools
	firstPools  *rows.Runner
	watch       *topics.GenerationWatch // nil: this process reads no pools

	components []processors.Component
	supervisor *processors.Supervisor
	closers    []func() error // in the order of opening; closed in reverse
}

// opener opens one part of an App.
type opener func(*App, context.Context) error

// openParts opens parts in order.
func openParts(ctx context.Context, o Options, parts []opener) (_ *App, err error) {
	p := &App{cfg: o.Config, file: o.File, extensions: o.Extensions, log: o.Log, metrics: prometheus.NewRegistry()}
	p.current.Store(&p.cfg)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	if err := errors.Join(p.metrics.Register(collectors.NewGoCollector()), p.metrics.Register(process)); err != nil {
		return nil, err
	}
	for _, open := range slices.Concat([]opener{(*App).openTracing}, parts, []opener{(*App).openConfigReload}) {
		if err := open(p, ctx); err != nil {
			return nil, err
		}
	}
	p.supervisor = processors.NewSupervisor(processors.DefaultBackoff(), p.log, p.components...)
	return p, nil
}

// component adds a component that runs under the supervisor.
func (p *App) component(name string, run func(context.Context) error) {
	p.components = append(p.components, processors.Component{Name: name, Run: run})
}

// onClose makes Close call f, before the functions of earlier calls.
func (p *App) onClose(f func() error) { p.closers = append(p.closers, f) }

// onCloseDo is onClose for a function without an error.
func (p *App) onCloseDo(f func()) {
	p.onClose(func() error {
		f()
		return nil
	})
}

// Run runs every component until ctx is done, and restarts components that fail. It must be called only once. When ctx is done,
// all components finish their work; the embedded broker serves them until Close.
func (p *App) Run(ctx context.Context) error { return p.supervisor.Run(ctx) }

// Close closes everything that was opened, in reverse order.
func (p *App) Close() error {
	var problems []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		problems = append(problems, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(problems...)
}

// Options configure Open.
type Options struct {
	Config     Config               // DefaultConfig with changes
	File       ConfigFile           // to reload Config; zero: it is not reloaded
	Role       Role                 // "": Dev
	Groups     []string             // of the role Process; none: all groups
	Extensions generator.Extensions // sources, scoring and rules in Go; used by the generator, in Dev and Process
	Log        *slog.Logger         // nil: no log
}

// Open opens every part of a role. It reports problems of the machine or the configuration before anything runs.
func Open(ctx context.Context, o Options) (*App, error) {
	o.Role = cmp.Or(o.Role, Dev)
	parts, err := o.Role.parts(o.Groups)
	if err != nil {
		return nil, err
	}
	if err := o.Config.Check(o.Role, o.Groups...); err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return openParts(ctx, o, parts)
}

// Ready returns nil once the App is ready. If ctx is done before, it returns an error with the components that are not ready.
// Run must be running.
func (p *App) Ready(ctx context.Context) error {
	err := periodic.Until(ctx, 20*time.Millisecond, func() (bool, error) { return len(p.missing()) == 0, nil })
	if err != nil {
		return fmt.Errorf("wait until the app is ready: %v: %w", p.missing(), err)
	}
	return nil
}

// Addr returns the address of the HTTP server, host:port.
func (p *App) Addr() string { return p.server.Addr() }

// URL returns the URL of the HTTP server, without a path.
func (p *App) URL() string { return p.server.Scheme() + "://" + p.Addr() }

// Brokers returns the addresses of the brokers, including an embedded one.
func (p *App) Brokers() []string { return p.kafka.Brokers }

// RegistryURL returns the URL of the schema registry, including an embedded one.
func (p *App) RegistryURL() string {
	if p.broker != nil {
		return p.broker.RegistryURL()
	}
	return p.cfg.registryURL()
}

// Client returns a client of this App's HTTP server with the token in auth.token_file. Without a token it is anonymous.
// The caller must close it. Client returns an error if a configured file cannot be read.
func (p *App) Client() (*client.Client, error) {
	token, err := p.cfg.Auth.SentToken(nil)
	if err != nil {
		return nil, err
	}
	return p.ClientAs(token)
}

// ClientAs is Client with another token; "": none. If the server uses TLS (api.tls), the client verifies its
// certificate with the authorities and the name in peers.tls. By default it uses the authorities of the system and the
// host of Addr.
func (p *App) ClientAs(token string) (*client.Client, error) {
	cfg := client.Config{Address: p.URL(), Token: token}
	if p.server.Scheme() == "https" {
		var err error
		if cfg.TLS, err = p.cfg.Peers.TLS.Config(); err != nil {
			return nil, fmt.Errorf("peers.tls: %w", err)
		}
	}
	return client.New(cfg)
}

// Publish publishes events and returns nil once the brokers have acknowledged all of them; see topics.Publisher. If an
// event is invalid, it returns an error and publishes nothing.
func (p *App) Publish(ctx context.Context, events ...schemas.Line) error {
	for i, e := range events {
		if err := e.Validate(schemas.MicrosOf(time.Now()), p.currentVerbs()); err != nil {
			return fmt.Errorf("publish event %d: %w", i+1, err)
		}
	}
	return p.publisher.Publish(ctx, events)
}

// Wait returns once the events that were published before the call have been processed; see topics.Wait and, if Pinot
// stores the actions, topics.AwaitExternalConsumers.
func (p *App) Wait(ctx context.Context) error {
	setup, err := p.Setup()
	if err != nil {
		return err
	}
	return setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil)
}
