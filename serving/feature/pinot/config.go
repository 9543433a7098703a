package pinot

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures the connection to Pinot. See DefaultConfig.
type Config struct {
	Brokers    []string `yaml:"brokers" help:"Pinot brokers, host:port or URL, used in turn and for failover; none: features are read from the embedded store"`
	Controller string   `yaml:"controller" default:"127.0.0.1:9000" help:"Pinot controller, host:port or URL; manages the table and reports Pinot's offsets"`
	// Of the rows of a user, the newest are read: at least half as many as fit.
	MaxResponseBytes settings.Bytes `yaml:"max_response_bytes" default:"64MiB" range:"64KiB..1GiB" help:"maximum size of a response of a broker"`
	MaxConnections   int            `yaml:"max_connections" default:"32" range:"1..1024" help:"maximum number of connections to each broker"`

	Client secure.HTTP `yaml:"client"` // HTTP settings for brokers and controller; TLS if the URL starts with https

	KafkaBrokers []string `yaml:"kafka_brokers" help:"Kafka brokers as Pinot's servers reach them; empty: the value of kafka"`
	RegistryURL  string   `yaml:"registry_url" help:"URL of the registry's Confluent-compatible API as Pinot's servers reach it; empty: the value of registry"`
	Replicas     int      `yaml:"replicas" default:"1" range:"1..10" help:"replicas of each segment"`
	// Stream is added to the table's stream configuration, which tells Pinot's servers how to reach Kafka and the
	// registry: security.protocol, sasl.mechanism, sasl.jaas.config, … The values are secrets. They are never printed,
	// but Pinot keeps them in its table.
	StreamConfig map[string]secure.Secret `yaml:"stream_config" help:"additional stream configuration of the table, such as security.protocol"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.StreamConfig = map[string]secure.Secret{}
	return c
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	for _, b := range c.Brokers {
		_, err := address(b)
		problems.Want(err == nil, "brokers: %w", err)
	}
	_, err := address(c.Controller)
	problems.Want(err == nil, "controller: %w", err)
	for _, key := range slices.Sorted(maps.Keys(c.StreamConfig)) {
		err := c.StreamConfig[key].Check()
		problems.Want(err == nil, "stream_config: %q: %w", key, err)
	}
	problems.Add(settings.Under("client", c.Client.Validate()))
	return problems.Err()
}

// address returns the URL for host:port or a URL.
func address(s string) (string, error) {
	if err := secure.CheckURL(s); err != nil {
		return "", fmt.Errorf("an address %w", err)
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		u, err = url.Parse("http://" + s)
	}
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q is neither host:port nor a URL without a path", s)
	}
	return u.String(), nil
}
