package product

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/serving/insight"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// product is what one process does of the pipeline: all of it, or some of its roles. Open it, Run it; Close it whether
// it ran or not.
type product struct {
	cfg     Config
	own     pools.Own // of the program around
	log     *slog.Logger
	metrics *prometheus.Registry

	tracer    *tracing.Tracer  // nil: nothing is traced
	broker    *embedded.Server // nil: the brokers are elsewhere
	kafka     topics.Kafka
	reach     *reach
	streams   *topics.Streams
	publisher *topics.Publisher
	deleted   topics.DeletedUsers
	ends      *topics.Log // where topics end
	groups    []*rows.Runner
	generator generator        // nil: nobody here asks for chunks
	local     *pools.Generator // of the pools that are here; nil: none can be
	related   feed.Neighbours  // nil: nobody here asks for neighbours
	interests peers.Interests  // nil: nobody here asks for terms and interests
	known     peers.Known      // nil: no rows that make users known are read here
	others    others           // nil: this process asks no others how they are
	decided   *topics.Whole[schemas.InterestDecision]
	retries   peers.Retries    // nil: nobody here asks how dead letters stand
	pulled    <-chan struct{}  // closed when what local merges from followees that are pulled is known
	hot       *pools.Hot       // counts that local knows; nil without it
	features  *feature.Service // nil: not served here
	insights  *insight.Service // likewise
	store     feed.Store       // what feeds are read from; nil: not here
	storeLag  *topics.StoreLag // of two feed stores; nil: there is one
	sinks     []feedSink       // what feeds are written to
	clusters  []*cassandra.Store
	stores    []func() storeStatus
	spare     []string      // parts without which all is answered
	feed      *feed.Service // nil: not served here
	server    *api.Server
	verifier  *auth.Verifier // of callers' tokens; nil: nobody is asked

	// Of the pools there may be another generation than the one this process began with, among groups.
	generations *generations // nil: no pools here
	firstPools  *rows.Runner
	watch       *topics.GenerationWatch // nil: no pools are read here

	parts      []processors.Part
	supervisor *processors.Supervisor
	closers    []func() error // in the order of opening; closed in reverse
}

// generator is the content generator, here or wherever a user's pools are.
type generator interface {
	feed.Generator
	feed.Explainer
	feed.Pools
}

// opener opens one piece of a product.
type opener func(*product, context.Context) error

// openProduct opens every piece in order, so that whatever is wrong with the machine or the configuration is said before
// anything runs.
func openProduct(ctx context.Context, cfg Config, log *slog.Logger, pieces []opener) (*product, error) {
	return openWith(ctx, cfg, pools.Own{}, log, pieces)
}

// openWith is openProduct with what the program around adds to the generator.
func openWith(ctx context.Context, cfg Config, own pools.Own, log *slog.Logger, pieces []opener) (_ *product, err error) {
	p := &product{cfg: cfg, own: own, log: log, metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := registerProcess(p.metrics); err != nil {
		return nil, err
	}
	for _, open := range append([]opener{(*product).openTracing}, pieces...) {
		if err := open(p, ctx); err != nil {
			return nil, err
		}
	}
	p.supervisor = processors.NewSupervisor(processors.DefaultBackoff(), log, p.parts...)
	return p, nil
}

func registerProcess(reg *prometheus.Registry) error {
	return errors.Join(
		reg.Register(collectors.NewGoCollector()),
		reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
}

// part has a piece of the product run under the supervisor.
func (p *product) part(name string, run func(context.Context) error) {
	p.parts = append(p.parts, processors.Part{Name: name, Run: run})
}

// frontPart is part of what answers others: it ends before the rest.
func (p *product) frontPart(name string, run func(context.Context) error) {
	p.parts = append(p.parts, processors.Part{Name: name, Run: run, Answers: true})
}

// onClose has f called when the product is closed, before what was opened earlier is.
func (p *product) onClose(f func() error) { p.closers = append(p.closers, f) }

// onCloseDo is onClose for what cannot fail.
func (p *product) onCloseDo(f func()) {
	p.onClose(func() error {
		f()
		return nil
	})
}

// Run runs every part until ctx ends, and starts again what fails. It is called once. When ctx ends, all parts
// finish what they hold; the broker serves them until Close.
func (p *product) Run(ctx context.Context) error { return p.supervisor.Run(ctx) }

// Close closes everything that was opened, the last first.
func (p *product) Close() error {
	var problems []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		problems = append(problems, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(problems...)
}
