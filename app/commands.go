package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/secure"
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

// DoctorChecks returns the checks that apply to the configuration. source names its origin in the report.
func (c *Config) DoctorChecks(environ []string, source string) ([]doctor.Check, error) {
	kafka, err := c.kafka()
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
	checks := []doctor.Check{doctor.Program(version, source), doctor.Process(local, url, version)}
	checks = append(checks, doctor.Kafka{Kafka: kafka, Embedded: embedded, Member: host}.Checks()...)
	checks = append(checks, doctor.Registry(registry, embedded))
	checks = append(checks, feedStoreChecks(*c)...)
	if c.usesPinot() {
		checks = append(checks, pinotCheck(*c))
	}
	return checks, nil
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

func feedStoreChecks(cfg Config) []doctor.Check {
	at := cfg.FeedStore.Cassandra
	verify := func(cluster cassandra.Cluster) func(context.Context) error {
		return func(ctx context.Context) error { return cassandra.Verify(ctx, at.Config, cluster) }
	}
	if !cfg.FeedStore.remote() {
		return nil
	}
	checks := []doctor.Check{doctor.FeedStore(doctor.PrimaryCheck, verify(at.Primary))}
	if len(at.Standby.Hosts) > 0 {
		checks = append(checks, doctor.FeedStore(doctor.StandbyCheck, verify(at.Standby)))
	}
	return checks
}

func pinotCheck(cfg Config) doctor.Check {
	return doctor.Pinot{
		Verify: cfg.pinotSetup().Verify,
		Answers: func(ctx context.Context) (int, []error) {
			client, err := pinot.NewClient(cfg.Pinot)
			if err != nil {
				return 0, []error{err}
			}
			defer client.Close()
			return client.Try(ctx)
		},
	}.Check()
}
