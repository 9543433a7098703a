package app

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/internal/otlp"
	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/insights"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/processors/materialize"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/retries"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Config holds all settings. Their sources are smartfeed.yaml, SMARTFEED_… variables and flags.
// deploy/smartfeed.example.yaml lists all settings with their defaults.
type Config struct {
	Dir            string              `yaml:"dir" default:"data" help:"state directory; only one process at a time can use it"`
	HTTP           string              `yaml:"http" default:"127.0.0.1:8080" help:"host:port of the HTTP server, both for the server and for the commands that call it"`
	Advertise      string              `yaml:"advertise" help:"host:port at which other processes reach this one's HTTP server; empty: the value of http"`
	Admin          string              `yaml:"admin" help:"host:port of the server for profiles (pprof) and metrics; empty: no such server"`
	Kafka          []string            `yaml:"kafka" help:"addresses of brokers, host:port; in dev, the address of the embedded broker"`
	Registry       string              `yaml:"registry" help:"schema registry, URL or host:port; in dev, the address of the embedded registry"`
	KafkaClient    topics.ClientConfig `yaml:"kafka_client"`
	RegistryClient secure.HTTP         `yaml:"registry_client"`

	// Only verbs and generator.feeds are reloaded.
	ReloadInterval time.Duration `yaml:"reload_interval" default:"2s" range:"100ms..1h" help:"interval at which the configuration file is checked for changes of verbs and generator.feeds"`
	FeaturesFile   string        `yaml:"features_file" help:"file with feature definitions; empty: the built-in definitions"`
	Partitions     int32         `yaml:"partitions" range:"0..1024" help:"partitions of each topic of the groups, a power of two; fixed once the topics exist; 0: 4 on the embedded broker, an error on other brokers"`
	Actions        ActionsConfig `yaml:"actions"`
	Verbs          schemas.Verbs `yaml:"verbs" help:"weights of the verbs of actions; added to the built-in verbs"`
	Log            LogConfig     `yaml:"log"`

	Embedded EmbeddedConfig `yaml:"embedded"`

	Rows        rows.Config        `yaml:"rows"`
	Objects     objects.Config     `yaml:"objects"`
	Actors      actors.Config      `yaml:"actors"`
	Fanout      fanout.Config      `yaml:"fanout"`
	Related     related.Config     `yaml:"related"`
	Pools       pools.Config       `yaml:"pools"`
	Generator   generator.Config   `yaml:"generator"`
	Materialize materialize.Config `yaml:"materialize"`
	Interests   interests.Config   `yaml:"interests"`
	Retries     retries.Config     `yaml:"retries"`

	FeedStore  FeedStoreConfig   `yaml:"feed_store"`
	Feed       feed.Config       `yaml:"feed"`
	Feature    feature.Config    `yaml:"feature"`
	Insight    insights.Config   `yaml:"insight"`
	Pinot      pinot.Config      `yaml:"pinot"`
	FeatureLog featurelog.Config `yaml:"feature_log"`
	VisitLog   VisitLogConfig    `yaml:"visit_log"`
	API        api.Config        `yaml:"api"`
	Auth       auth.Config       `yaml:"auth"`
	Metrics    MetricsConfig     `yaml:"metrics"`
	Peers      peers.Config      `yaml:"peers"`
	Tracing    otlp.Config       `yaml:"tracing"`
	Outgoing   outgoing.Config   `yaml:"outgoing"`
}

// ActionsConfig configures the retention of the input topic of actions.
type ActionsConfig struct {
	// Retention is the longest downtime of the groups without lost actions, and how far back another consumer of the topic
	// can start. It must be the same in every process and in `topics apply`.
	Retention time.Duration `yaml:"retention" default:"168h" range:"24h.." help:"retention of the topic actions; topics apply sets it"`
}

// VisitLogConfig configures the log of the items that visits showed.
type VisitLogConfig struct {
	Share float64 `yaml:"share" range:"0..1" help:"share of the users whose visits are logged, the same users as with sample_entities in feature_log; 0: none"`
	// Retention must be the same in every process and in `topics apply`.
	Retention time.Duration `yaml:"retention" default:"720h" range:"24h.." help:"retention of the topic visit-log; topics apply sets it"`
}

// MetricsConfig configures access to the metrics for callers without the scope operate.
type MetricsConfig struct {
	// The token permits only GET /metrics: on the server if authentication is enabled, and on an admin address beyond
	// loopback. The file is read for each scrape.
	TokenFile string `yaml:"token_file" help:"file with a static token of at least 32 bytes for scrapers; empty: none"`
}

// EmbeddedConfig limits the embedded broker of `smartfeed dev`.
type EmbeddedConfig struct {
	MaxBytes   settings.Bytes `yaml:"max_bytes" default:"20GiB" range:"1MiB.." help:"maximum size of the embedded broker's files; above it, the program stops"`
	SyncWrites bool           `yaml:"sync_writes" help:"fsync each batch of the embedded broker: it survives a power failure, at a third of the throughput"`
}

// DefaultConfig returns the defaults, for one process on one machine.
func DefaultConfig() Config {
	broker := embedded.DefaultConfig()
	c := settings.Defaults[Config]() // of the nested structs, too
	c.Kafka = []string{broker.Kafka}
	c.Registry = broker.Registry
	c.Verbs = schemas.DefaultVerbs()
	c.Objects = objects.DefaultConfig()
	c.Actors = actors.DefaultConfig()
	c.Related = related.DefaultConfig()
	c.Generator = generator.DefaultConfig()
	c.Interests = interests.DefaultConfig()
	c.FeedStore.Cassandra.Primary, c.FeedStore.Cassandra.Standby = cassandra.DefaultCluster(), cassandra.DefaultCluster()
	c.Pinot = pinot.DefaultConfig()
	return c
}

// Validate copies shared values to the nested structs and reports every value that is out of range, with its path.
func (c *Config) Validate() error {
	c.settle()
	return errors.Join(c.validateOwn(), settings.Nested(c))
}

func (c *Config) validateOwn() error {
	var problems settings.Problems
	problems.Want(c.Dir != "", "dir: is empty: want a directory")
	problems.Want(len(c.Kafka) > 0, "kafka: is empty: want at least one host:port")
	for _, addr := range append([]string{c.HTTP, c.peerAddress()}, c.Kafka...) {
		_, _, err := net.SplitHostPort(addr)
		problems.Want(err == nil, "http, advertise or kafka: %q: want host:port", addr)
	}
	problems.Want(c.Partitions <= 0 || c.Partitions&(c.Partitions-1) == 0, "partitions: %d: want a power of two", c.Partitions)
	problems.Add(settings.Validate(c), settings.Under("actions", settings.Validate(c.Actions)), settings.Under("visit_log", settings.Validate(c.VisitLog)))
	problems.Add(c.validateAdminAddress())
	err := secure.CheckURL(c.registryURL())
	problems.Want(err == nil, "registry: the address %w", err)
	problems.Want(c.Log.Format == "text" || c.Log.Format == "json", "log.format: %q: want text or json", c.Log.Format)
	// A delivery writes a row per edge, and uses the other rows to trim pools.
	problems.Want(c.Fanout.StepFollowers*4 <= c.Rows.MaxRecordWrites, "rows.max_record_writes: %d: want at least 4 times fanout.step_followers, %d",
		c.Rows.MaxRecordWrites, c.Fanout.StepFollowers)
	return problems.Err()
}

// Write prints the configuration as a file, without secrets.
func (c *Config) Write(w io.Writer, o config.Options) error {
	defaults := DefaultConfig()
	return config.Write(w, c.shown(), &defaults, o)
}

// Values returns the configuration for JSON, without secrets.
func (c *Config) Values(o config.Options) (any, error) {
	defaults := DefaultConfig()
	return config.Values(c.shown(), &defaults, o)
}

// shown returns the configuration with addresses that contain no secrets. Values of the type secure.Secret are printed masked.
func (c *Config) shown() *Config {
	out := *c
	out.Auth.JWKS = secure.ShownURL(c.Auth.JWKS)
	out.Generator.Model.URL = secure.ShownURL(c.Generator.Model.URL)
	out.Generator.ExternalSources = slices.Clone(c.Generator.ExternalSources)
	for i := range out.Generator.ExternalSources {
		out.Generator.ExternalSources[i].URL = secure.ShownURL(out.Generator.ExternalSources[i].URL)
	}
	return &out
}

// settle copies shared values to each nested struct that uses them.
func (c *Config) settle() {
	c.Objects.Verbs, c.Actors.Verbs = c.Verbs, c.Verbs
	c.Generator.HalfLife = c.Fanout.ScoreHalfLife
	c.Generator.HandoverWait = c.Feed.Longest()
	c.Generator.VisitLogShare = c.VisitLog.Share
	c.Related.ScoreHalfLife = c.Fanout.ScoreHalfLife
}

// below resolves a path relative to the state directory.
func (c *Config) below(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// peerAddress returns the address at which other processes reach this one.
func (c *Config) peerAddress() string { return cmp.Or(c.Advertise, c.HTTP) }

// hosts returns the host names that requests may use: configured ones, and those in the process's own addresses.
func (c *Config) hosts() []string {
	names := slices.Clone(c.API.AllowedHosts)
	for _, address := range []string{c.HTTP, c.peerAddress(), c.Admin} {
		if host, _, err := net.SplitHostPort(address); err == nil && foreign.Name(host) {
			names = append(names, host)
		}
	}
	return names
}

// registryURL returns the registry's address as a URL.
func (c *Config) registryURL() string {
	if strings.Contains(c.Registry, "://") {
		return c.Registry
	}
	return "http://" + c.Registry
}

// broker returns the configuration of the embedded broker.
func (c *Config) broker() embedded.Config {
	return embedded.Config{
		Dir: c.Dir, Kafka: c.Kafka[0], Registry: c.Registry,
		MaxBytes: int64(c.Embedded.MaxBytes), SyncWrites: c.Embedded.SyncWrites,
	}
}

// generatorReadsFeatures reports whether the generator reads features or embeddings.
func (c *Config) generatorReadsFeatures() bool {
	return c.Generator.Model.UsesFeatures() || c.Generator.LooksUpEmbeddings()
}

// usesPinot reports whether features are read from Pinot instead of the embedded store.
func (c *Config) usesPinot() bool { return len(c.Pinot.Brokers) > 0 }

// partitions returns the number of partitions of the groups' topics, by default that of the embedded broker.
func (c *Config) partitions() int32 { return cmp.Or(c.Partitions, topics.EmbeddedPartitions) }

// externalConsumers returns the external consumers, which read topics without a consumer group.
func (c *Config) externalConsumers() ([]topics.ExternalConsumer, error) {
	if !c.usesPinot() {
		return nil, nil
	}
	return pinot.NewExternalConsumers(c.Pinot)
}

// kafka returns the client configuration for the brokers.
func (c *Config) kafka() (topics.Kafka, error) {
	k, err := c.KafkaClient.Kafka(c.Kafka, c.partitions())
	k.Assumed, k.Actions, k.VisitLog = c.Partitions == 0, c.Actions.Retention, c.VisitLog.Retention
	if c.KafkaClient.StaticMembership {
		k.Member = c.peerAddress()
	}
	return k, err
}

// LogConfig configures the log, which goes to standard error.
type LogConfig struct {
	Level  slog.Level `yaml:"level" help:"debug, info, warn or error"`
	Format string     `yaml:"format" default:"text" help:"text or json"`
}

// Logger returns a logger that writes to w as configured.
func (c LogConfig) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level, ReplaceAttr: errorText}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// errorText logs an error as its text. Some libraries would otherwise add the stack of its origin.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
