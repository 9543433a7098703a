// Package cassandra keeps on an Apache Cassandra cluster what package feedstore keeps on one machine's disk: a feed store
// for more than one process, with copies.
//
//	feeds     user | position ↓             an item of a frozen feed; floor, static; swept
//	edges     user | other, kind            the state of one register
//	cards     pin                           the newest version
//	places    followee | created ↓, pin     where a pin stands in a list, now or formerly
//	listings  followee | pin                the newest version that the followee was told of
//	gone      user                          deleted for good
//
// Every cell is written with the record's own time, or its version, as the write time, which is what decides in
// Cassandra: so nothing is read to write, a repeat changes nothing, and any order of the same writes ends in the same
// rows, as the conformance suite demands. At one time the greater value stays, which an edge makes use of. A write time
// in the far future could be neither overwritten nor deleted: the doors of the pipeline refuse such events.
//
// An entry, the floor and the range that is trimmed go to one partition in one mutation, so that a page and its floor
// are of one moment. A row is deleted only by trimming, with one range for all that is below the floor: the newest page
// never meets it.
//
// Deletion. What deletes the rows of each table. An erasure deletes all rows under the user.
//
//	feeds     cap: MaxFeed and a tenth, by ranges; TTL, if one is configured; erasure
//	edges     erasure of either side; a dead one stays, as in package feedstore
//	cards     never: of a deleted pin the tombstone stays, as in package feedstore
//	places    erasure of the followee; those of deleted pins stay, as in package feedstore
//	listings  erasure of the followee; of a deleted pin the version stays
//	gone      never: a delete is final
//
// There is no counter, no lightweight transaction, no batch over several partitions, and nothing is bound to null, which
// would write a tombstone. Writes are acknowledged by a quorum of the datacenter, and reads ask one, so that a read after
// a Write has it. What an acknowledgement is worth on a node that is killed is commitlog_sync in its cassandra.yaml:
// periodic, which is the default, loses what came in its last moments, group and batch do not.
package cassandra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// Config is what all clusters of a product have alike. See DefaultConfig.
type Config struct {
	// Keyspace holds the tables, default "smartfeed": a letter, then at most 47 of a-z, 0-9 and _.
	Keyspace string `yaml:"keyspace"`
	// Timeout bounds one request to a node, default 2 s, 10 ms to 1 minute. A read usually ends earlier, with its context.
	Timeout time.Duration `yaml:"timeout"`
	// Writers is how many mutations of one Write are under way, default 16, 1 to 1024.
	Writers int `yaml:"writers"`
	// TTL of the items of frozen feeds, default 0: none, at most 20 years, whole seconds. Trimming bounds a feed already;
	// a TTL lets go of what people have who never come back, and the feed of whoever does ends with what is younger. It
	// holds for what is written after apply has set it.
	TTL time.Duration `yaml:"ttl"`
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{Keyspace: "smartfeed", Timeout: 2 * time.Second, Writers: 16}
}

// maxTTL is what Cassandra takes.
const maxTTL = 20 * 365 * 24 * time.Hour

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("timeout", c.Timeout, 10*time.Millisecond, time.Minute),
		bounds.Within("writers", c.Writers, 1, 1024),
	}
	if !isKeyspace(c.Keyspace) {
		problems = append(problems, fmt.Errorf("keyspace: %q: want a letter, then at most 47 of a-z, 0-9 and _", c.Keyspace))
	}
	if c.TTL < 0 || c.TTL > maxTTL || c.TTL%time.Second != 0 {
		problems = append(problems, fmt.Errorf("ttl: %s: want whole seconds from 0s to %s", c.TTL, maxTTL))
	}
	return errors.Join(problems...)
}

// isKeyspace allows only what needs no quoting: the name becomes a part of statements.
func isKeyspace(name string) bool {
	return name != "" && len(name) <= 48 && name[0] >= 'a' && name[0] <= 'z' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Cluster is where one cluster is. See DefaultCluster.
type Cluster struct {
	// Hosts are some of its nodes, host:port or host with the port 9042; the others are found through these. Default:
	// none, which is no cluster.
	Hosts []string `yaml:"hosts"`
	// Datacenter is the one that answers, default "datacenter1", which is what a node without a topology says.
	Datacenter string `yaml:"datacenter"`
	// Replicas is how many nodes of the datacenter have each row, default 3, 1 to 9: of the keyspace, when it is made.
	Replicas int `yaml:"replicas"`
	// TLS of every connection, default: none.
	TLS secure.TLS `yaml:"tls"`
	// Login is as whom its nodes are asked, default: nobody. The role needs SELECT and MODIFY on the keyspace, and for
	// apply CREATE and ALTER.
	Login secure.Login `yaml:"login"`
}

// DefaultCluster returns the defaults of every field.
func DefaultCluster() Cluster {
	return Cluster{Hosts: []string{}, Datacenter: "datacenter1", Replicas: 3}
}

// Validate reports every field that is out of its bounds.
func (c Cluster) Validate() error {
	problems := []error{bounds.Within("replicas", c.Replicas, 1, 9)}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, " ,/") {
			problems = append(problems, fmt.Errorf("hosts: %q: want host:port", host))
		}
	}
	if c.Datacenter == "" || strings.ContainsAny(c.Datacenter, "'\\") {
		problems = append(problems, fmt.Errorf("datacenter: %q: want a name without quotes", c.Datacenter))
	}
	problems = append(problems, secure.Under("tls", c.TLS.Validate()), secure.Under("login", c.Login.Validate()))
	return errors.Join(problems...)
}

// ErrAway says that there is no connection to the cluster at present. Run goes on trying.
var ErrAway = errors.New("the cluster cannot be reached")

// Store is a feed store on one cluster. Its methods may be called from any number of goroutines, and fail with an
// ErrAway at once while there is no session: Run makes it, and keeps it.
type Store struct {
	name    string
	cfg     Config
	cluster Cluster
	trim    feedstore.Trimming
	log     *slog.Logger
	driver  driver
	answers atomic.Bool // a node did, at the last look
	session atomic.Pointer[gocql.Session]
	why     atomic.Pointer[error] // there is no session
}

// New makes a store that keeps maxFeed items of a feed, 10 at least. It dials nothing yet. name is for errors and the log.
func New(name string, cfg Config, cluster Cluster, maxFeed int, log *slog.Logger) (*Store, error) {
	problems := errors.Join(cfg.Validate(), cluster.Validate())
	if len(cluster.Hosts) == 0 {
		problems = errors.Join(problems, errors.New("hosts: none"))
	}
	if maxFeed < 10 {
		problems = errors.Join(problems, fmt.Errorf("max_feed: %d: want at least 10", maxFeed))
	}
	if problems != nil {
		return nil, fmt.Errorf("feed store %s: %w", name, problems)
	}
	connect := func() (*gocql.Session, error) { return open(settings(cfg, cluster)) }
	return &Store{
		name: name, cfg: cfg, cluster: cluster, trim: feedstore.NewTrimming(maxFeed), log: log.With("store", name),
		driver: driver{open: connect, ask: ask, close: (*gocql.Session).Close},
	}, nil
}

// Name is the name given to New.
func (s *Store) Name() string { return s.name }

// conn returns the session.
func (s *Store) conn() (*gocql.Session, error) {
	if session := s.session.Load(); session != nil {
		return session, nil
	}
	if why := s.why.Load(); why != nil {
		return nil, fmt.Errorf("feed store %s: %w: %w", s.name, ErrAway, *why)
	}
	return nil, fmt.Errorf("feed store %s: %w", s.name, ErrAway)
}

// Connected tells whether there is a session. It may be one whose nodes have gone since: see Answers.
func (s *Store) Connected() bool { return s.session.Load() != nil }

// Answers tells whether a node of the cluster answered when Run last asked, which it does each second; of one that hangs it
// knows after Config.Timeout.
func (s *Store) Answers() bool { return s.answers.Load() }

// Metric is a gauge of Answers, with the store's name.
func (s *Store) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "smartfeed_feedstore_connected", Help: "1 while a node of the store answers, which is asked each second.",
		ConstLabels: prometheus.Labels{"store": s.name},
	}, func() float64 {
		if s.Answers() {
			return 1
		}
		return 0
	})
}

// Connect waits until there is a session, or ctx ends. Run must be running.
func (s *Store) Connect(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.conn()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
