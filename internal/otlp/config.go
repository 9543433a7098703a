package otlp

import (
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config configures tracing. See DefaultConfig.
type Config struct {
	// Without a path, traces go to /v1/traces.
	Endpoint string `yaml:"endpoint" help:"URL of the OTLP/HTTP collector of traces, such as http://127.0.0.1:4318; empty: tracing is off"`
	// Client configures TLS and authentication.
	Client  secure.HTTP              `yaml:",inline"`
	Headers map[string]secure.Secret `yaml:"headers" help:"additional headers of each request to the collector"`

	SampleRatio float64 `yaml:"sample_ratio" default:"0.01" range:"0..1" help:"share of the traces started by this process that are sampled"`
}

// DefaultConfig returns the defaults of the tags.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of range.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	if c.Endpoint != "" {
		problems.Add(settings.Under("endpoint", checkEndpoint(c.Endpoint)))
	}
	for name, value := range c.Headers {
		valid := httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value.Reveal())
		problems.Want(valid, "headers: %q: invalid name or value", name)
		problems.Add(settings.Under("headers", value.Check()))
	}
	problems.Add(c.Client.Validate())
	return problems.Err()
}

// checkEndpoint returns an error for an invalid address. The error does not contain the address, which may contain a
// password.
func checkEndpoint(address string) error {
	if err := secure.CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("want http://host:port or https://host:port, optionally with a path")
	}
	return nil
}

// url returns the URL for posts: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request.
func (c Config) url() string {
	if u, err := url.Parse(c.Endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(c.Endpoint, "/") + "/v1/traces"
	}
	return c.Endpoint
}

// header returns the additional headers of every request.
func (c Config) header() map[string]string {
	headers := map[string]string{"User-Agent": "smartfeed"}
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	return headers
}
