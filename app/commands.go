package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// version is set by the linker: the git tag or commit. go install does not set it.
var version = "unknown"

// Version returns the git tag or commit of the build; after go install, the version of the module; or "unknown".
func Version() string {
	build, ok := debug.ReadBuildInfo()
	if version != "unknown" || !ok || build.Main.Version == "" || build.Main.Version == "(devel)" {
		return version
	}
	return build.Main.Version
}

// Setup returns the connection settings of commands for the configured brokers and registry. The caller sets Log,
// Progress and Results.
func (c *Config) Setup() (topics.Setup, error) {
	kafka, err := c.kafka()
	if err != nil {
		return topics.Setup{}, err
	}
	setup, err := c.setup(kafka)
	setup.Access = c.RegistryClient
	return setup, err
}

func (c *Config) setup(kafka topics.Kafka) (topics.Setup, error) {
	externalConsumers, err := c.externalConsumers()
	return topics.Setup{
		Kafka: kafka, Registry: c.registryURL(), Verbs: c.Verbs, FeedStores: c.FeedStore.others(), ExternalConsumers: externalConsumers,
	}, err
}

// Setup returns the connection settings for the brokers and the registry of p, including embedded ones.
func (p *App) Setup() (topics.Setup, error) {
	setup, err := p.cfg.setup(p.kafka)
	setup.Registry, setup.Log, setup.Verbs = p.RegistryURL(), p.log, p.currentVerbs()
	if p.broker == nil {
		setup.Access = p.cfg.RegistryClient
	}
	return setup, err
}

// ClientConfig returns the client configuration for the HTTP server at c.HTTP, with the token in environ or in
// auth.token_file.
func (c *Config) ClientConfig(environ []string) (client.Config, error) {
	token, err := c.Auth.SentToken(environ)
	if err != nil {
		return client.Config{}, err
	}
	var settings *tls.Config
	if c.API.TLS.CertFile != "" || c.Peers.HTTPS {
		if settings, err = c.Peers.TLS.Config(); err != nil {
			return client.Config{}, fmt.Errorf("peers.tls: %w", err)
		}
	}
	return client.Config{Address: c.HTTP, Token: token, TLS: settings}, nil
}

// PinotSetup returns the connection settings of commands for Pinot. It returns topics.ErrPartitions if the brokers are
// external and partitions is not configured.
func (c *Config) PinotSetup() (pinot.Setup, error) {
	if c.Partitions == 0 && !c.hasEmbeddedBroker() {
		return pinot.Setup{}, topics.ErrPartitions
	}
	return c.pinotSetup(), nil
}

func (c *Config) pinotSetup() pinot.Setup {
	return pinot.Setup{Config: c.Pinot, Kafka: c.Kafka, Registry: c.registryURL(), Partitions: c.partitions(), Sequences: c.Feature.SequenceRetention}
}

// hasEmbeddedBroker reports whether the configuration refers to the embedded broker of the role Dev: Dev has run in this
// directory, or the address is its default.
func (c *Config) hasEmbeddedBroker() bool {
	if _, err := os.Stat(filepath.Join(c.Dir, "broker")); err == nil {
		return true
	}
	return slices.Equal(c.Kafka, DefaultConfig().Kafka)
}

// RunningDir returns the state directory of the process at c.HTTP if it runs on this machine, and c.Dir otherwise.
func (c *Config) RunningDir(ctx context.Context, environ []string) string {
	host, _, err := net.SplitHostPort(reachable(c.HTTP))
	if err != nil || !secure.OnLoopback(host) {
		return c.Dir
	}
	at, err := c.ClientConfig(environ)
	if err != nil {
		return c.Dir
	}
	s, err := status.Request(ctx, at)
	if err != nil || s.Dir == "" {
		return c.Dir // the process check reports the error
	}
	if _, err := os.Stat(s.Dir); err != nil {
		return c.Dir // a path inside a container
	}
	return s.Dir
}

// DoctorChecks returns the checks that apply to the configuration. source names its origin in the report.
func (c *Config) DoctorChecks(environ []string, source string) ([]doctor.Check, error) {
	setup, err := c.Setup()
	if err != nil {
		return nil, err
	}
	registry, err := schemas.NewRegistryAs(c.RegistryClient, strings.Split(c.registryURL(), ",")...)
	if err != nil {
		return nil, err
	}
	at, err := c.ClientConfig(environ)
	if err != nil {
		return nil, err
	}
	local, url, err := c.localClient(at)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	embedded := c.hasEmbeddedBroker()
	dir := doctor.Directory{Path: c.Dir, MinBytes: int64(c.Rows.MinFreeDiskBytes), Files: doctor.OpenFiles()}
	checks := []doctor.Check{
		doctor.Program(version, source),
		dir.Check(),
		doctor.Process(local, url, version),
	}
	if embedded {
		checks = append(checks, doctor.Ports(map[string]string{"http": c.HTTP, "kafka": c.Kafka[0], "registry": c.Registry}))
	}
	checks = append(checks, doctor.Kafka{Kafka: setup.Kafka, Readers: setup.Readers(), Embedded: embedded, Member: host, Now: time.Now}.Checks()...)
	checks = append(checks, doctor.Registry(registry, embedded))
	checks = append(checks, feedStoreChecks(*c, setup.Kafka)...)
	if !c.usesPinot() {
		return checks, nil
	}
	check, err := pinotCheck(*c, setup.Kafka)
	return append(checks, check), err
}

// localClient returns a client of a process on this machine that sends the configured token, and the URL of the process.
func (c *Config) localClient(at client.Config) (local *http.Client, url string, err error) {
	as, scheme := secure.HTTP{Token: secure.Secret(at.Token)}, "http://"
	if at.TLS != nil {
		as.TLS, scheme = c.Peers.TLS, "https://"
	}
	local, err = as.Client(&http.Transport{DisableKeepAlives: true}) // two requests
	return local, scheme + reachable(at.Address), err
}

// reachable returns the address at which a client on this machine reaches a listener.
func reachable(address string) string {
	for _, any := range []string{"", "0.0.0.0", "[::]"} {
		if port, ok := strings.CutPrefix(address, any+":"); ok {
			return "127.0.0.1:" + port
		}
	}
	return address
}

func feedStoreChecks(cfg Config, kafka topics.Kafka) []doctor.Check {
	at := cfg.FeedStore.Cassandra
	verify := func(cluster cassandra.Cluster) func(context.Context) error {
		return func(ctx context.Context) error { return cassandra.Verify(ctx, at.Config, cluster) }
	}
	if !cfg.FeedStore.remote() {
		return nil
	}
	checks := []doctor.Check{doctor.FeedStore(doctor.PrimaryCheck, verify(at.Primary))}
	if len(at.Standby.Hosts) == 0 {
		return checks
	}
	drift := doctor.Drift{Kafka: kafka, With: cfg.FeedStore.connect}
	return append(checks, doctor.FeedStore(doctor.StandbyCheck, verify(at.Standby)), drift.Check())
}

// connect calls use with both clusters connected.
func (c FeedStoreConfig) connect(ctx context.Context, use func(primary, standby doctor.Heads)) error {
	primary, err := cassandra.New(PrimaryStore, c.Cassandra.Config, c.Cassandra.Primary, c.MaxItems, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	standby, err := cassandra.New(StandbyStore, c.Cassandra.Config, c.Cassandra.Standby, c.MaxItems, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	connected, cancel := context.WithCancel(ctx)
	group, running := errgroup.WithContext(connected)
	group.Go(func() error { return primary.Run(running) })
	group.Go(func() error { return standby.Run(running) })
	if await(ctx, func() bool { return primary.Connected() && standby.Connected() }) {
		use(primary, standby)
	} else {
		err = errors.New("connect to both Cassandra clusters: at least one is unreachable")
	}
	cancel()
	return errors.Join(err, group.Wait())
}

func pinotCheck(cfg Config, kafka topics.Kafka) (doctor.Check, error) {
	setup := cfg.pinotSetup()
	consumers, err := pinot.NewExternalConsumers(cfg.Pinot)
	if err != nil {
		return doctor.Check{}, err
	}
	return doctor.Pinot{
		Verify: setup.Verify,
		Answers: func(ctx context.Context) (int, []error) {
			client, err := pinot.NewClient(cfg.Pinot)
			if err != nil {
				return 0, []error{err}
			}
			defer client.Close()
			return client.Try(ctx)
		},
		Oldest: func(ctx context.Context) (time.Time, error) {
			l, err := topics.NewLog(kafka)
			if err != nil {
				return time.Time{}, err
			}
			defer l.Close()
			return l.OldestUnprocessed(ctx, consumers...)
		},
	}.Check(), nil
}
