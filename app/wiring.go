package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/otlp"
	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/insight"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/serving/web"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// openTracing exports spans if an endpoint is configured. Tracing opens first and closes last, and therefore also exports
// the spans of the other components' shutdown.
func (p *App) openTracing(context.Context) error {
	if p.cfg.Tracing.Endpoint == "" {
		return nil
	}
	exporter, err := otlp.Open(p.cfg.Tracing, otlp.Deps{
		Instance: p.cfg.peerAddress(), Version: version, Log: p.log.With("component", "tracing"),
	})
	if err != nil {
		return err
	}
	p.onCloseDo(exporter.Close)
	p.tracer = exporter.Tracer()
	return nil
}

func (p *App) openBroker(ctx context.Context) error {
	var err error
	if p.broker, err = embedded.Start(ctx, p.cfg.broker(), p.log.With("component", "broker")); err != nil {
		return err
	}
	p.onClose(p.broker.Close)
	p.component("broker", p.broker.Run)
	p.kafka = p.broker.Kafka(p.cfg.partitions())
	p.kafka.Tracer = p.tracer
	profile := topics.Profile{Embedded: true, Partitions: p.cfg.partitions()}
	if _, err := topics.Apply(ctx, p.kafka, topics.Catalogue(profile)); err != nil {
		return fmt.Errorf("%w\n(%s was created with other settings: set partitions to its partition count, or use another directory)", err, p.cfg.Dir)
	}
	return nil
}

// openDir locks the state directory for this process.
func (p *App) openDir(context.Context) error {
	if err := os.MkdirAll(p.cfg.Dir, 0o700); err != nil {
		return err
	}
	lock, err := embedded.LockDir(p.cfg.Dir)
	if err != nil {
		return err
	}
	p.onClose(lock.Unlock)
	return nil
}

// openKafka connects to external brokers. It returns an error if they do not grant the permissions of the role, or if
// their topics do not match the catalogue: with another partition count, a process would map owners to wrong partitions.
func openKafka(role string) opener {
	return func(p *App, ctx context.Context) (err error) {
		if p.kafka, err = p.cfg.kafka(); err != nil {
			return err
		}
		p.kafka.Tracer = p.tracer
		p.kafka.ClientID = peers.ClientID(p.cfg.peerAddress())
		if err := topics.VerifyAccess(ctx, p.kafka, role); err != nil {
			return err
		}
		profile, err := topics.VerifyAll(ctx, p.kafka, role)
		p.kafka.Embedded = profile.Embedded
		return err
	}
}

// newRegistry returns a client of the registry: the embedded one, or the configured one.
func (p *App) newRegistry() (*schemas.Registry, error) {
	if p.broker != nil {
		return schemas.NewRegistry(p.broker.RegistryURL())
	}
	return schemas.NewRegistryAs(p.cfg.RegistryClient, strings.Split(p.cfg.registryURL(), ",")...)
}

func (p *App) openStreams(ctx context.Context) error {
	registry, err := p.newRegistry()
	if err != nil {
		return err
	}
	if p.streams, err = topics.Open(ctx, registry); err != nil {
		return err
	}
	p.health = &brokerHealth{kafka: p.kafka}
	p.component("kafka", p.health.Run)
	if p.publisher, err = topics.NewPublisher(p.kafka, p.streams); err != nil {
		return err
	}
	p.onCloseDo(p.publisher.Close)
	if p.ends, err = topics.NewLog(p.kafka); err != nil {
		return err
	}
	p.onCloseDo(p.ends.Close)
	p.deleted = topics.DeletedUsers{GlobalTable: openTable(p, p.streams.UsersDeleted)}
	p.decided = openTable(p, p.streams.InterestDecisions)
	return nil
}

// globalTable is a global table of this process. ready is closed when the process has read it.
type globalTable struct {
	topic string
	ready <-chan struct{}
}

// openTable adds a global table as a component.
func openTable[T any](p *App, s topics.Stream[T]) *topics.GlobalTable[T] {
	t := topics.NewGlobalTable(p.kafka, s, p.instance(), p.log)
	p.tables = append(p.tables, globalTable{s.Name, t.Ready()})
	p.component(s.Name, t.Run)
	return t
}

// afterGlobalTables starts run once the deleted users and the term decisions have been read. Without them, run could
// emit records that no later record corrects.
func (p *App) afterGlobalTables(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, ready := range []<-chan struct{}{p.deleted.Ready(), p.decided.Ready()} {
			select {
			case <-ready:
			case <-ctx.Done():
				return nil
			}
		}
		return run(ctx)
	}
}

// instance returns the unique name of this process. It stays the same after a restart, because it is part of the names
// of consumer groups.
func (p *App) instance() string {
	if p.broker != nil {
		return "dev"
	}
	return p.cfg.peerAddress()
}

// openGroups runs the named groups in this process. If pools is among them, the content generator runs here, too.
func openGroups(names []string) opener {
	return func(p *App, ctx context.Context) error {
		cfg := p.cfg.Rows
		cfg.Dir = p.cfg.below(cfg.Dir)
		shared, err := rows.NewShared(cfg)
		if err != nil {
			return err
		}
		p.onCloseDo(shared.Close)
		if bars := progress.To(os.Stderr); bars.Terminal() && p.cfg.Log.Format != "json" {
			shared.ShowProgress(func(what string, total int) topics.Progress { return bars.Start(what, total) })
		}
		known := groupRows{}
		env := rows.Env{Kafka: p.kafka, Streams: p.streams, Log: p.log, Metrics: p.metrics, Shared: shared}
		for _, name := range names {
			g, err := groupNamed(name)
			if err != nil {
				return err
			}
			reader, err := p.openGroup(ctx, g, cfg, env)
			if err != nil {
				return err
			}
			if g.known {
				known[name] = reader
			}
		}
		if len(known) > 0 {
			p.services.Known, p.services.Users = known, userRows{p.generations, known[topics.Fanout]}
		}
		return nil
	}
}

// openGroup adds a group as a component, and returns a reader of its rows.
func (p *App) openGroup(ctx context.Context, g group, cfg rows.Config, env rows.Env) (rows.Reader, error) {
	if g.generations {
		return p.openGenerations(ctx, g, cfg, env)
	}
	runner, err := rows.New(cfg, env, g.define(p))
	if err != nil {
		return nil, err
	}
	p.groups = append(p.groups, runner)
	p.component(g.name, p.afterGlobalTables(runner.Run))
	if g.read != nil {
		g.read(p, runner)
	}
	return runner.View(), nil
}

// openGenerations adds the generations of the pools as components, and opens the content generator on the active one.
func (p *App) openGenerations(ctx context.Context, g group, cfg rows.Config, env rows.Env) (rows.Reader, error) {
	var err error
	p.generations, err = newPoolGenerations(ctx, p, func(number int) (*rows.Runner, error) {
		definition := g.define(p)
		definition.Generation = number
		return rows.New(cfg, env, definition)
	})
	if err != nil {
		return nil, err
	}
	p.firstPools, p.watch = p.generations.running()[0], p.generations.watch
	p.groups = append(p.groups, p.firstPools)
	p.component(g.name, p.afterGlobalTables(p.generations.initial()))
	p.component(topics.Generations, p.generations.Run)
	return p.generations, p.openGenerator(p.generations)
}

// openGenerator opens the content generator on the local pools.
func (p *App) openGenerator(view generator.Rows) error {
	recents, counts, tops := openTable(p, p.streams.RecentsPulled), openTable(p, p.streams.HotPins), openTable(p, p.streams.PopularPins)
	pulled, hot := generator.NewPulled(recents.Ready()), generator.NewHot(counts.Ready())
	popular := generator.NewPopular(p.cfg.Objects.Popular.HalfLife, tops.Ready())
	recents.OnChange(pulled.Change)
	counts.OnChange(hot.Change)
	tops.OnChange(popular.Change)
	guard, err := outgoing.New(p.cfg.Outgoing, nil)
	if err != nil {
		return err
	}
	p.local, err = generator.New(p.cfg.Pools, p.generatorConfig(), generator.Deps{
		Rows: view, End: generator.DataEnd{Log: p.ends}, Streams: p.streams, Deleted: p.deleted, Pulled: pulled, Hot: hot, Popular: popular,
		Features: p.matrix, Embeddings: p.embeddings, Dial: guard.DialContext, Extensions: p.extensions, Metrics: p.metrics,
	})
	if err != nil {
		return err
	}
	p.onCloseDo(p.local.Close)
	p.services.Generator = p.local
	return nil
}

// generatorConfig sets Elsewhere to 0 if the broker is embedded: no other process can have owned the pools.
func (p *App) generatorConfig() generator.Config {
	cfg := p.cfg.Generator
	if p.broker != nil {
		cfg.HandoverWait = 0
	}
	return cfg
}

// openPeers opens the client for requests to the processes that own the partitions.
func (p *App) openPeers(context.Context) error {
	admin, err := p.kafka.Admin()
	if err != nil {
		return err
	}
	p.onCloseDo(admin.Close)
	watch := &topics.GenerationWatch{Log: p.ends}
	p.watch = watch
	p.component(topics.Generations, func(ctx context.Context) error { return watch.Run(ctx, func(error) {}) })
	owners := map[string]peers.Directory{}
	for _, g := range groups() {
		m := peers.Members{Admin: admin, Group: g.name, Topic: g.owners}
		if g.generations {
			m.Generation = func() int { return watch.Of(g.name).Active }
		}
		owners[g.name] = m
	}
	deps := peers.Deps{
		Owners: owners, Processes: peers.AllMembers{Admin: admin, Groups: p.readerGroups},
		Partitions: p.cfg.partitions(),
	}
	if err := p.configurePeerClient(&deps); err != nil {
		return err
	}
	c := peers.NewClient(deps)
	p.onCloseDo(c.Close)
	p.peers = c
	p.services = peers.Local{Generator: c, Neighbors: c, Retries: c, Interests: c, Insights: c, Known: c, Users: c}
	return nil
}

// openServer opens the HTTP server with the routes that this process can answer.
func (p *App) openServer(context.Context) error {
	deps := api.Deps{
		Publisher: p.publisher, Verbs: p.currentVerbs, Status: p.status, Ready: p.missing,
		Tracer: p.tracer, Metrics: p.metrics, Gatherer: p.metrics, Log: p.log,
	}
	set := metrics.New(p.metrics, "smartfeed_")
	set.Measure("ready", "1 if the process is ready, and otherwise 0; /readyz lists the reasons.", nil,
		func() float64 { return metrics.Flag(len(p.missing()) == 0) })
	if err := set.Err(); err != nil {
		return err
	}
	deps.Peer = p.peer()
	if p.feed != nil {
		deps.Feed, deps.Features, deps.Console = p.feed, p.features, web.Handler()
		deps.DeadLetters = deadLetters{p.kafka, p.streams, p.services.Retries, semaphore.NewWeighted(1)}
		deps.Insights = insight.NewService(insight.Config{
			Partitions: p.cfg.partitions(), SequenceDays: p.cfg.Insight.SequenceDays(), Timeout: p.cfg.Insight.Timeout,
			Arms: func() map[string]map[string]float64 { return p.current.Load().Generator.Feeds.ArmShares() },
		}, p.services.Insights, time.Now)
		deps.Known = knownUsers{p.deleted, p.services.Known}
		deps.Directory = users{p.services.Users, p.cfg.partitions()}
		deps.Config = func(changed bool) (any, error) { return p.current.Load().Values(config.Options{Changed: changed}) }
		deps.Dictionary = interests.Service{
			Config: p.cfg.Interests, Partitions: p.cfg.partitions(), Rows: p.services.Interests, Decisions: p.decided, Deleted: p.deleted,
			Pins: p.store, Publisher: p.publisher,
		}
	}
	err := p.configureAuth(&deps)
	if err != nil {
		return err
	}
	settings := p.cfg.API
	settings.AllowedHosts = p.cfg.hosts()
	if p.server, err = api.Listen(p.cfg.HTTP, settings, deps); err != nil {
		return err
	}
	p.onClose(p.server.Close)
	p.components = append(p.components, processors.Component{Name: "http", Run: p.server.Run, Serves: true}) // stops before the others
	return p.openAdmin()
}

// peer returns the handler for requests from other processes; nil: they send none to this process.
func (p *App) peer() http.Handler {
	if p.broker != nil { // there are no other processes
		return nil
	}
	var local peers.Local
	if p.peers == nil {
		local = p.services
	}
	if local == (peers.Local{}) && p.cfg.Auth.Enabled() && p.cfg.Peers.SecretFile == "" {
		return nil // no process can authenticate as a peer, and no request needs these routes
	}
	local.Process = p
	return peers.Handler(local)
}

func (p *App) openAdmin() error {
	if p.cfg.Admin == "" {
		return nil
	}
	scrape, err := p.scrapeToken()
	if err != nil {
		return err
	}
	a, err := listenAdmin(p.cfg, scrape, p.metrics)
	if err != nil {
		return err
	}
	p.onCloseDo(func() { _ = a.listener.Close() }) // fails only if Run has closed it
	p.component("admin", a.Run)
	return nil
}
