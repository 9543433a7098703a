package otlp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// Config configures tracing. See DefaultConfig.
type Config struct {
	// Endpoint is the URL of the collector. Without a path, traces go to /v1/traces. Default none.
	Endpoint string `yaml:"endpoint" help:"OTLP/HTTP collector that takes traces, such as http://127.0.0.1:4318; empty: nothing is traced"`
	// Client configures TLS and authentication.
	Client secure.HTTP `yaml:",inline"`
	// Headers are additional headers of each request. Default none.
	Headers map[string]secure.Secret `yaml:"headers"`
	// Sample is the share of new traces that is sampled, default 0.01, 0 to 1.
	Sample float64 `yaml:"sample" help:"share of what begins here that is traced, 0 to 1"`
	// FromCallers makes the traceparent of a request decide whether it is sampled. Default true.
	FromCallers bool `yaml:"from_callers"`
	// Service is the service.name of the spans, default smartfeed, 1 to 128 bytes.
	Service string `yaml:"service"`
	// Queue is the maximum number of queued spans. More are dropped. Default 8192, 1 to 1,000,000.
	Queue int `yaml:"queue"`
	// Batch is the maximum number of spans per post, default 512, 1 to 10,000.
	Batch int `yaml:"batch"`
	// Every is the maximum time between two posts while spans are queued; default 1 s, 10 ms to 1 m.
	Every time.Duration `yaml:"every"`
	// Timeout limits a post including its retries, which the collector requests with status 429, 502, 503 or 504. It also
	// limits the last posts at the end of the process. Default 5 s, 100 ms to 1 m.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Sample: 0.01, FromCallers: true, Service: "smartfeed", Queue: 8192, Batch: 512, Every: time.Second, Timeout: 5 * time.Second}
}

// Validate reports every field that is out of range.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("sample", c.Sample, 0, 1),
		bounds.Within("queue", c.Queue, 1, 1_000_000),
		bounds.Within("batch", c.Batch, 1, 10_000),
		bounds.Within("every", c.Every, 10*time.Millisecond, time.Minute),
		bounds.Within("timeout", c.Timeout, 100*time.Millisecond, time.Minute),
	}
	problem := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	if c.Endpoint != "" {
		problems = append(problems, secure.Under("endpoint", checkEndpoint(c.Endpoint)))
	}
	for name, value := range c.Headers {
		problem(httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value.Reveal()), "headers: %q is no header, or its value cannot be one", name)
		problems = append(problems, secure.Under("headers", value.Check()))
	}
	problem(c.Service != "" && len(c.Service) <= 128, "service: %d bytes: want 1 to 128", len(c.Service))
	return errors.Join(append(problems, c.Client.Validate())...)
}

// checkEndpoint returns what is wrong with an address without repeating it, because it may contain a password.
func checkEndpoint(address string) error {
	if err := secure.CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is no http://host:port or https://host:port, with a path or without")
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
