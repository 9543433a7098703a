package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/materialize"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/serving/feedstore/hedged"
	"github.com/smartfeed/smartfeed/topics"
)

// FeedStoreConfig says where materialized feeds are stored: on the local disk, or on one or two Cassandra clusters.
type FeedStoreConfig struct {
	feedstore.Config `yaml:",inline"`
	Cassandra        CassandraConfig `yaml:"cassandra"`
	Hedge            hedged.Config   `yaml:"hedge"` // reads of two clusters
}

// CassandraConfig is used if the primary has hosts.
type CassandraConfig struct {
	cassandra.Config `yaml:",inline"`
	Primary          cassandra.Cluster `yaml:"primary"`
	Standby          cassandra.Cluster `yaml:"standby"` // without hosts: no standby
}

// Validate reports every value that is out of range, with its path.
func (c CassandraConfig) Validate() error { return settings.Nested(&c) }

// Validate reports every value that is out of range, with its path.
func (c FeedStoreConfig) Validate() error {
	err := settings.Nested(&c)
	if len(c.Cassandra.Standby.Hosts) > 0 && len(c.Cassandra.Primary.Hosts) == 0 {
		err = errors.Join(err, errors.New("cassandra.standby.hosts: a standby without a primary"))
	}
	return err
}

// remote reports whether several processes can use the feed store.
func (c FeedStoreConfig) remote() bool { return len(c.Cassandra.Primary.Hosts) > 0 }

// ttl returns how long the feed store keeps items of materialized feeds; 0: no time limit, only a maximum length.
func (c FeedStoreConfig) ttl() time.Duration {
	if !c.remote() {
		return 0
	}
	return c.Cassandra.TTL
}

// others returns the names of the feed stores other than the primary. Each has its own sink.
func (c FeedStoreConfig) others() []string {
	if len(c.Cassandra.Standby.Hosts) == 0 {
		return nil
	}
	return []string{StandbyStore}
}

// The names of the feed stores. The second one is also the name of its sink.
const (
	PrimaryStore = "primary"
	StandbyStore = "standby"
)

// storeLagComponent is the name of the component that compares the feed stores.
const storeLagComponent = "feed-store-lag"

// feedSink is a feed store that this or another process fills.
type feedSink struct {
	name  string // "": the primary
	store materialize.Store
}

// openFeedStore opens the store from which feeds are read and to which they are written.
func (p *App) openFeedStore(context.Context) error {
	if p.cfg.FeedStore.remote() {
		return p.openCassandra()
	}
	store, err := feedstore.Open(p.cfg.below("feed"), p.cfg.FeedStore.Config, p.log)
	if err != nil {
		return err
	}
	p.onClose(store.Close)
	p.store, p.sinks = store, []feedSink{{"", store}}
	p.storeOf(PrimaryStore, "embedded", nil)
	return nil
}

func (p *App) openCassandra() error {
	cfg := p.cfg.FeedStore.Cassandra
	primary, err := p.openCluster(PrimaryStore, cfg.Primary)
	if err != nil {
		return err
	}
	p.store, p.sinks = primary, []feedSink{{"", cassandra.RetryingWriter{Store: primary}}}
	if len(cfg.Standby.Hosts) == 0 {
		return nil
	}
	standby, err := p.openCluster(StandbyStore, cfg.Standby)
	if err != nil {
		return err
	}
	p.sinks = append(p.sinks, feedSink{StandbyStore, cassandra.RetryingWriter{Store: standby}})
	groups := map[string]string{PrimaryStore: topics.MaterializeGroup(""), StandbyStore: topics.MaterializeGroup(StandbyStore)}
	p.storeLag = topics.NewStoreLag(p.ends, groups, p.cfg.partitions(), p.cfg.FeedStore.Hedge.MaxLag)
	both, err := hedged.New(p.cfg.FeedStore.Hedge, hedged.Stores{Primary: primary, Standby: standby, Lag: p.storeLag}, p.metrics)
	if err != nil {
		return err
	}
	p.store = both
	p.onCloseDo(both.Close)
	return nil
}

// openCluster opens a store on Cassandra that keeps reconnecting. The cluster may be unavailable at the start.
func (p *App) openCluster(name string, at cassandra.Cluster) (*cassandra.Store, error) {
	cfg := p.cfg.FeedStore
	store, err := cassandra.New(name, cfg.Cassandra.Config, at, cfg.MaxItems, p.log)
	if err != nil {
		return nil, err
	}
	if err := p.metrics.Register(store.Metric()); err != nil {
		return nil, fmt.Errorf("feed store %s: %w", name, err)
	}
	p.component("feed-store-"+name, store.Run)
	p.clusters = append(p.clusters, store)
	p.storeOf(name, "cassandra", store.Answers)
	return store, nil
}

// openSinks makes this process fill the feed stores. If one of two is unavailable, reads use the other one, and its
// sink resumes when it has recovered.
func (p *App) openSinks(context.Context) error {
	for _, to := range p.sinks {
		group := topics.MaterializeGroup(to.name)
		sink, err := materialize.New(p.cfg.Materialize, materialize.Env{
			Kafka: p.kafka, Streams: p.streams, Name: to.name, Store: to.store, Metrics: p.metrics, Deleted: p.deleted,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", group, err)
		}
		p.component(group, p.afterGlobalTables(sink.Run))
		if len(p.sinks) > 1 {
			p.optional = append(p.optional, group)
		}
	}
	return nil
}

// openOwnSinks makes this process fill the feed store if no other process can.
func (p *App) openOwnSinks(ctx context.Context) error {
	if p.cfg.FeedStore.remote() {
		return nil
	}
	return p.openSinks(ctx)
}
