package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
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
	if err := registerProcess(p.metrics); err != nil {
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

func registerProcess(reg *prometheus.Registry) error {
	return errors.Join(
		reg.Register(collectors.NewGoCollector()),
		reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
}

// component adds a component that runs under the supervisor.
func (p *App) component(name string, run func(context.Context) error) {
	p.components = append(p.components, processors.Component{Name: name, Run: run})
}

// frontComponent adds a component that answers requests. It stops before the other components.
func (p *App) frontComponent(name string, run func(context.Context) error) {
	p.components = append(p.components, processors.Component{Name: name, Run: run, Serves: true})
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
