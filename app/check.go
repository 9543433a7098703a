package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// Check reports every configuration problem that prevents a role from starting. Open, the commands of the roles, and
// "config check" call it before they open anything. It reads files, but neither writes files nor connects. For the
// role "" it reports the problems that affect every role. groups are the groups of the role Process; none: all.
func (c *Config) Check(role Role, groups ...string) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return errors.Join(c.checkRole(role, groups), c.checkFiles(role))
}

// checkRole reports values that are valid by themselves but not for a role.
func (c *Config) checkRole(role Role, groups []string) error {
	generates := role == Process && answersPeers(groups)
	problems := settings.Problems{checkGroups(groups), api.CheckExposure(c.HTTP, c.API, api.Exposure{
		Callers: c.Auth.Enabled(), Peer: generates, Peers: c.Peers.SecretFile != "",
	})}
	problems.Want(!generates || c.usesPinot() || !c.Generator.Model.UsesFeatures(),
		"generator.model.features: the role process reads features only from Pinot: set pinot.brokers")
	problems.Want(!generates || c.usesPinot() || !c.Generator.LooksUpEmbeddings(),
		"generator.feeds: spacing: the role process reads embeddings only from Pinot: set pinot.brokers")
	switch role {
	case Dev:
		problems.Add(settings.Under("embedded", c.broker().Validate()))
	case Process, Serve, Materialize:
		problems.Add(c.checkPeerAddress())
	}
	problems.Want(role != Materialize || c.FeedStore.remote(),
		"feed_store.cassandra.primary.hosts: is empty: only the role serve can fill an embedded feed store")
	return problems.Err()
}

// checkPeerAddress rejects port 0, because other processes need the port before this one listens, and every address
// that they cannot reach.
func (c *Config) checkPeerAddress() error {
	address := c.peerAddress()
	if _, port, err := net.SplitHostPort(address); err == nil && port == "0" {
		return fmt.Errorf("http: %s: other processes need a fixed port: set one, or set --advertise", address)
	}
	if err := c.Peers.CheckAddress(address); err != nil {
		return fmt.Errorf("http, advertise: %w", err)
	}
	return nil
}

// checkFiles reports every file that a role needs, at start or later, and that is unreadable or has invalid contents.
func (c *Config) checkFiles(role Role) error {
	var problems settings.Problems
	add := func(needed bool, path string, check func() error) {
		if needed {
			err := check()
			problems.Want(err == nil, "%s: %w", path, err)
		}
	}
	serves := role == "" || role == Dev || role == Serve
	stores := serves || role == Materialize
	primary, standby := c.FeedStore.Cassandra.Primary, c.FeedStore.Cassandra.Standby
	add(role != Dev, "kafka", func() error { _, err := c.kafka(); return err })
	add(role != Dev, "registry_client", checkClient(c.RegistryClient))
	add(serves || role == Process && c.generatorReadsFeatures(), "features_file", c.checkFeatures)
	add(serves, "feed.cursor_key_file", c.checkCursorKey)
	add(serves && c.usesPinot(), "pinot.client", checkClient(c.Pinot.Client))
	add(stores && len(primary.Hosts) > 0, "feed_store.cassandra.primary", checkCluster(primary))
	add(stores && len(standby.Hosts) > 0, "feed_store.cassandra.standby", checkCluster(standby))
	add(c.API.TLS.CertFile != "", "api.tls", func() error { _, err := tls.LoadX509KeyPair(c.API.TLS.CertFile, c.API.TLS.KeyFile); return err })
	add(c.Auth.SecretFile != "", "auth.secret_file", checkSecret(c.Auth.SecretFile))
	add(c.Metrics.TokenFile != "", "metrics.token_file", checkSecret(c.Metrics.TokenFile))
	add(c.Peers.SecretFile != "", "peers.secret_file", checkSecret(c.Peers.SecretFile))
	add(c.Peers.HTTPS, "peers.tls", func() error { _, err := c.Peers.TLS.Config(); return err })
	add(c.Tracing.Endpoint != "", "tracing", checkClient(c.Tracing.Client))
	return problems.Err()
}

// checkFeatures checks the definitions, and that the model of the generator can use them.
func (c *Config) checkFeatures() error {
	definitions, err := feature.Load(c.FeaturesFile)
	if err != nil || !c.Generator.Model.UsesFeatures() {
		return err
	}
	if err := feature.CheckNumbers(definitions, c.Generator.Model.Features); err != nil {
		return fmt.Errorf("generator.model.features: %w", err)
	}
	return nil
}

func checkClient(as secure.HTTP) func() error {
	return func() error { _, err := as.Client(&http.Transport{}); return err }
}

func checkSecret(file string) func() error {
	return func() error { _, err := auth.ReadSecret(file); return err }
}

func checkCluster(at cassandra.Cluster) func() error {
	return func() error {
		_, err := at.TLS.Config()
		_, secret := at.Login.Secret()
		return errors.Join(err, secret)
	}
}

// checkCursorKey checks an existing key. If there is none, the role creates one when it starts.
func (c *Config) checkCursorKey() error {
	file := c.below(c.Feed.CursorKeyFile)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	_, err := feed.LoadKey(file)
	return err
}
