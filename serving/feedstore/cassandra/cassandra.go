// Package cassandra implements the feed store on an Apache Cassandra cluster. Unlike the embedded store of package
// feedstore, it is replicated, and several processes can share it.
//
//	feeds          user | position ↓             an item of a materialized feed; trim_position, static; swept
//	edges          user | other, kind            the state of one register
//	cards          pin                           the newest version
//	places         followee | created ↓, pin     the current or a previous place of a pin in a list
//	listings       followee | pin                the newest version published for the followee
//	deleted_users  user                          a permanently deleted user
//
// Every cell is written with the time or the version of its record as the write time, and the write time decides in
// Cassandra. Therefore a write reads nothing, a repeat changes nothing, and any order of the same writes leads to the same
// rows, as the conformance suite requires. At the same write time the greater value remains; edges rely on this. A write
// time in the far future could be neither overwritten nor deleted, so the pipeline rejects such events before they get
// here.
//
// An entry, the trim position and the range that is trimmed are written to one partition in one mutation, so that a page and
// its trim position are consistent. Trimming and erasure are the only deletes of feeds. Trimming deletes everything below the
// trim position with one range tombstone, which the newest page never reads.
//
// Deletion. The following deletes the rows of each table. An erasure deletes all rows of the user.
//
//	feeds          cap: MaxFeed plus a tenth, by ranges; TTL, if one is configured; erasure
//	edges          erasure of either side; a dead edge stays, as in package feedstore
//	cards          never: the card of a deleted pin stays as its tombstone, as in package feedstore
//	places         erasure of the followee; those of deleted pins stay, as in package feedstore
//	listings       erasure of the followee; the version of a deleted pin stays
//	deleted_users  never: a delete is final
//
// The store uses no counters, no lightweight transactions and no batches over several partitions. It binds no nulls,
// because a null writes a tombstone.
//
// A quorum of the datacenter acknowledges writes and answers reads, so a read after a Write sees it. The setting
// commitlog_sync in cassandra.yaml decides whether a killed node keeps its acknowledged writes. With periodic, which is the
// default, it loses the last moments; with group and batch it does not.
package cassandra

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// Config is the configuration that all clusters share. See DefaultConfig.
type Config struct {
	Keyspace string `yaml:"keyspace" default:"smartfeed" help:"keyspace of the tables: a letter, then at most 47 of a-z, 0-9 and _"`
	// A read usually ends earlier, with its context.
	Timeout             time.Duration `yaml:"timeout" default:"2s" range:"10ms..1m" help:"timeout of a request to a node"`
	MaxConcurrentWrites int           `yaml:"max_concurrent_writes" default:"16" range:"1..1024" help:"maximum number of concurrent mutations of one write"`
	// Trimming already limits the length of a feed; a TTL also removes the items of users who never return. The feed of a
	// user who does return ends with the items that have not expired. The TTL applies to items written after apply has set
	// it.
	TTL time.Duration `yaml:"ttl" range:"0s..175200h" help:"time to live of the items of materialized feeds, in whole seconds; 0: none"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	problems.Want(isKeyspace(c.Keyspace), "keyspace: %q: want a letter, then at most 47 of a-z, 0-9 and _", c.Keyspace)
	problems.Want(c.TTL%time.Second == 0, "ttl: %s: want whole seconds", c.TTL)
	return problems.Err()
}

// isKeyspace reports whether a name needs no quoting, because the name becomes a part of statements.
func isKeyspace(name string) bool {
	return name != "" && len(name) <= 48 && name[0] >= 'a' && name[0] <= 'z' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Cluster is the address and the access to one cluster. See DefaultCluster.
type Cluster struct {
	// The driver discovers the other nodes. Without hosts, the cluster does not exist.
	Hosts []string `yaml:"hosts" help:"addresses of some nodes: host:port, or host with the port 9042; none: no cluster"`
	// The default is the name on a node without a topology.
	Datacenter string `yaml:"datacenter" default:"datacenter1" help:"datacenter that serves reads and writes"`
	Replicas   int    `yaml:"replicas" default:"3" range:"1..9" help:"nodes of the datacenter that hold each row; set when the keyspace is created"`
	// TLS applies to every connection. Default none.
	TLS secure.TLS `yaml:"tls"`
	// Login is the role of the client. Default none. The role needs SELECT and MODIFY on the keyspace, and for apply also
	// CREATE and ALTER.
	Login secure.Login `yaml:"login"`
}

// DefaultCluster returns the default configuration of a cluster.
func DefaultCluster() Cluster {
	c := settings.Defaults[Cluster]()
	c.Hosts = []string{}
	return c
}

// Validate reports every field that is out of bounds.
func (c Cluster) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	for _, host := range c.Hosts {
		problems.Want(host != "" && !strings.ContainsAny(host, " ,/"), "hosts: %q: want host:port", host)
	}
	problems.Want(c.Datacenter != "" && !strings.ContainsAny(c.Datacenter, "'\\"), "datacenter: %q: want a name without quotes", c.Datacenter)
	problems.Add(settings.Under("tls", c.TLS.Validate()), settings.Under("login", c.Login.Validate()))
	return problems.Err()
}

// ErrUnavailable is returned while there is no session with the cluster. Run keeps trying to connect.
var ErrUnavailable = errors.New("the cluster cannot be reached")

// Store is a feed store on one cluster. Its methods are safe for concurrent use. They return ErrUnavailable at once
// while there is no session. Run creates the session and maintains it.
type Store struct {
	name    string
	cfg     Config
	cluster Cluster
	trim    feedstore.Trimming
	log     *slog.Logger
	driver  driver
	answers atomic.Bool // whether a node answered the last check
	session atomic.Pointer[gocql.Session]
	why     atomic.Pointer[error] // why there is no session
}

// New returns a store that keeps maxFeed items of a feed, at least 10. It does not connect yet. name is for errors and the
// log.
func New(name string, cfg Config, cluster Cluster, maxFeed int, log *slog.Logger) (*Store, error) {
	problems := settings.Problems{cfg.Validate(), cluster.Validate()}
	problems.Want(len(cluster.Hosts) > 0, "hosts: none")
	problems.Want(maxFeed >= 10, "max_items: %d: want at least 10", maxFeed)
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("feed store %s: %w", name, err)
	}
	connect := func() (*gocql.Session, error) { return open(clusterConfig(cfg, cluster)) }
	return &Store{
		name: name, cfg: cfg, cluster: cluster, trim: feedstore.NewTrimming(maxFeed), log: log.With("store", name),
		driver: driver{open: connect, ping: ping, close: (*gocql.Session).Close},
	}, nil
}

// Name returns the name passed to New.
func (s *Store) Name() string { return s.name }

// conn returns the session, or ErrUnavailable with the last reason.
func (s *Store) conn() (*gocql.Session, error) {
	if session := s.session.Load(); session != nil {
		return session, nil
	}
	if why := s.why.Load(); why != nil {
		return nil, fmt.Errorf("feed store %s: %w: %w", s.name, ErrUnavailable, *why)
	}
	return nil, fmt.Errorf("feed store %s: %w", s.name, ErrUnavailable)
}

// Connected reports whether there is a session. Its nodes may have become unavailable since, see Answers.
func (s *Store) Connected() bool { return s.session.Load() != nil }

// Answers reports whether a node of the cluster answered the last check of Run. Run checks every second, and detects a node
// that hangs after Config.Timeout.
func (s *Store) Answers() bool { return s.answers.Load() }

// Metric returns a gauge of Answers with the store's name.
func (s *Store) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "smartfeed_feedstore_up", Help: "1 if a node of the feed store answered the last check, which runs every second, otherwise 0.",
		ConstLabels: prometheus.Labels{"store": s.name},
	}, func() float64 { return metrics.Flag(s.Answers()) })
}
