package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/materialize"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/web"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// product is the whole pipeline in one process: broker and registry, groups, sinks, serving. Open it, Run it; Close
// it whether it ran or not.
type product struct {
	cfg     Config
	log     *slog.Logger
	metrics *prometheus.Registry

	broker    *embedded.Server
	kafka     topics.Kafka
	streams   *topics.Streams
	publisher *topics.Publisher
	deleted   topics.DeletedUsers
	groups    []*rows.Runner
	features  *feature.Service
	feed      *feed.Service
	server    *api.Server
	generator *pools.Generator
	ends      *topics.Log // where topics end

	parts      []processors.Part
	supervisor *processors.Supervisor
	closers    []func() error // in the order of opening; closed in reverse
}

// openProduct starts the broker and opens every part, so that whatever is wrong with the machine or the configuration
// is said before anything runs.
func openProduct(ctx context.Context, cfg Config, log *slog.Logger) (_ *product, err error) {
	p := &product{cfg: cfg, log: log, metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := registerProcess(p.metrics); err != nil {
		return nil, err
	}
	for _, open := range []func(context.Context) error{
		p.openBroker, p.openStreams, p.openGroups, p.openFeatures, p.openFeed, p.openServer,
	} {
		if err := open(ctx); err != nil {
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

// opened has close called when the product is closed, before what was opened earlier.
func (p *product) opened(close func() error) { p.closers = append(p.closers, close) }

// closed adapts a Close that cannot fail.
func closed(f func()) func() error {
	return func() error {
		f()
		return nil
	}
}

func (p *product) openBroker(ctx context.Context) error {
	var err error
	if p.broker, err = embedded.Start(ctx, p.cfg.broker(), p.log.With("part", "broker")); err != nil {
		return err
	}
	p.opened(p.broker.Close)
	p.part("broker", p.broker.Run)
	p.kafka = p.broker.Kafka(p.cfg.Partitions)
	profile := topics.Profile{Embedded: true, Partitions: p.cfg.Partitions}
	if _, err := topics.Apply(ctx, p.kafka, topics.Catalogue(profile)); err != nil {
		return fmt.Errorf("%w\n(%s was made with other settings: set partitions to what it has, or use another directory)", err, p.cfg.Dir)
	}
	return nil
}

func (p *product) openStreams(ctx context.Context) error {
	registry, err := schemas.NewRegistry(p.broker.RegistryURL())
	if err != nil {
		return err
	}
	if p.streams, err = topics.Open(ctx, registry); err != nil {
		return err
	}
	if p.publisher, err = topics.NewPublisher(p.kafka, p.streams); err != nil {
		return err
	}
	p.opened(closed(p.publisher.Close))
	p.deleted = topics.NewDeletedUsers(p.kafka, p.streams, "dev", p.log)
	p.part("users-deleted", p.deleted.Run)
	return nil
}

func (p *product) openGroups(context.Context) error {
	cfg := p.cfg.Rows
	cfg.Dir = p.cfg.below(cfg.Dir)
	shared, err := rows.NewShared(cfg)
	if err != nil {
		return err
	}
	p.opened(closed(shared.Close))
	env := rows.Env{Kafka: p.kafka, Streams: p.streams, Log: p.log, Metrics: p.metrics, Shared: shared}
	for _, g := range []rows.Group{
		objects.Group(p.cfg.Objects, p.streams, p.deleted),
		actors.Group(p.cfg.Actors, p.streams, p.deleted),
		fanout.Group(p.cfg.Fanout, p.cfg.Partitions, p.streams, p.deleted),
		pools.Group(p.cfg.Pools, p.streams, p.deleted),
	} {
		runner, err := rows.New(cfg, env, g)
		if err != nil {
			return err
		}
		p.groups = append(p.groups, runner)
		p.part(g.Name, runner.Run)
	}
	return nil
}

func (p *product) openFeatures(context.Context) error {
	definitions, err := feature.Load(p.cfg.Features)
	if err != nil {
		return err
	}
	metrics, err := feature.NewMetrics(p.metrics)
	if err != nil {
		return err
	}
	store, err := feature.OpenEmbedded(p.cfg.below("features"), p.cfg.Feature, p.log, time.Now)
	if err != nil {
		return err
	}
	p.opened(store.Close)
	sink, err := feature.NewSink(p.cfg.Feature, feature.SinkDeps{
		Kafka: p.kafka, Streams: p.streams, Store: store, DeadLetters: p.publisher, Metrics: metrics, Now: time.Now,
	})
	if err != nil {
		return err
	}
	p.part(topics.Features, sink.Run)
	p.features, err = feature.NewService(p.cfg.Feature, feature.Deps{
		Store: store, Definitions: definitions, Deleted: p.deleted, Metrics: metrics, Log: p.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	p.opened(closed(p.features.Close))
	return nil
}

func (p *product) openFeed(context.Context) error {
	store, err := feedstore.Open(p.cfg.below("feed"), p.cfg.FeedStore, p.log)
	if err != nil {
		return err
	}
	p.opened(store.Close)
	sink, err := materialize.New(p.cfg.Materialize, materialize.Env{
		Kafka: p.kafka, Streams: p.streams, Store: store, Metrics: p.metrics,
	})
	if err != nil {
		return err
	}
	p.part(p.cfg.Materialize.Group(), sink.Run)
	generator, err := p.newGenerator()
	if err != nil {
		return err
	}
	client, err := p.kafka.Client()
	if err != nil {
		return err
	}
	p.opened(closed(client.Close))
	key, err := feed.LoadKey(p.cfg.below("cursor.key"))
	if err != nil {
		return err
	}
	p.feed, err = feed.New(p.cfg.Feed, feed.Deps{
		Generator: generator, Store: store, Served: feed.NewServedTopic(client, p.streams), CursorKey: key, Metrics: p.metrics,
	})
	if err != nil {
		return err
	}
	p.opened(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), p.cfg.API.ShutdownTimeout)
		defer cancel()
		return p.feed.Close(ctx)
	})
	return nil
}

// newGenerator makes the content generator on the pools that are here.
func (p *product) newGenerator() (*pools.Generator, error) {
	var err error
	if p.ends, err = topics.NewLog(p.kafka); err != nil {
		return nil, err
	}
	p.opened(closed(p.ends.Close))
	view := p.groups[len(p.groups)-1].View()
	p.generator = pools.NewGenerator(p.cfg.Pools, p.cfg.Generator, pools.Deps{
		Rows: view, End: pools.DataEnd{Log: p.ends}, Streams: p.streams, Deleted: p.deleted,
	})
	return p.generator, nil
}

func (p *product) openServer(context.Context) error {
	console, err := web.Handler()
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	p.server, err = api.Listen(p.cfg.HTTP, p.cfg.API, api.Deps{
		Feed: p.feed, Pools: p.generator, Features: p.features, Publisher: p.publisher, Verbs: p.cfg.Verbs,
		Status: p.status, Ready: p.missing, Console: console,
		Metrics: p.metrics, Gatherer: p.metrics, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.opened(p.server.Close)
	p.part("http", p.server.Run)
	return p.openAdmin()
}

func (p *product) openAdmin() error {
	if p.cfg.Admin == "" {
		return nil
	}
	a, err := listenAdmin(p.cfg.Admin)
	if err != nil {
		return err
	}
	p.opened(closeListener(a.listener))
	p.part("admin", a.Run)
	return nil
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
