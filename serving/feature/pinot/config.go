package pinot

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// Config configures the connection to Pinot. See DefaultConfig.
type Config struct {
	Brokers    []string `yaml:"brokers"`    // host:port or URL, used in turn and as failover; none: features come from the embedded store
	Controller string   `yaml:"controller"` // manages the table and reports Pinot's offsets, host:port or URL; default 127.0.0.1:9000
	MaxBytes   int64    `yaml:"max_bytes"`  // of one answer, 64 KiB to 1 GiB, default 64 MiB: of a user's rows, the newest that fit are read
	MaxConns   int      `yaml:"max_conns"`  // to each broker, 1 to 1024, default 32

	Client secure.HTTP `yaml:"client"` // HTTP settings for brokers and controller; TLS if the URL starts with https

	Kafka    []string `yaml:"kafka"`    // Kafka brokers as Pinot's servers reach them; default those of this program
	Registry string   `yaml:"registry"` // URL of the registry's Confluent-compatible API as Pinot's servers reach it; default that of this program
	Replicas int      `yaml:"replicas"` // of each segment, 1 to 10, default 1
	// Stream is added to the table's stream configuration, which tells Pinot's servers how to reach Kafka and the
	// registry: security.protocol, sasl.mechanism, sasl.jaas.config, … The values are secrets. They are never printed,
	// but Pinot keeps them in its table.
	Stream map[string]secure.Secret `yaml:"stream"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Controller: "127.0.0.1:9000", MaxBytes: 64 << 20, MaxConns: 32, Replicas: 1, Stream: map[string]secure.Secret{}}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	errs := []error{
		bounds.Within("max_bytes", c.MaxBytes, 64<<10, 1<<30),
		bounds.Within("max_conns", c.MaxConns, 1, 1024),
		bounds.Within("replicas", c.Replicas, 1, 10),
	}
	for _, b := range c.Brokers {
		if _, err := address(b); err != nil {
			errs = append(errs, fmt.Errorf("brokers: %w", err))
		}
	}
	if _, err := address(c.Controller); err != nil {
		errs = append(errs, fmt.Errorf("controller: %w", err))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Stream)) {
		if err := c.Stream[key].Check(); err != nil {
			errs = append(errs, fmt.Errorf("stream: %q: %w", key, err))
		}
	}
	return errors.Join(append(errs, secure.Under("client", c.Client.Validate()))...)
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
