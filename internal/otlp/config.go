package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// Config says what is traced, and where spans go. See DefaultConfig.
type Config struct {
	Endpoint    string                   `yaml:"endpoint" help:"OTLP/HTTP collector that takes traces, such as http://127.0.0.1:4318; empty: nothing is traced"` // without a path: /v1/traces of it
	Client      secure.HTTP              `yaml:",inline"`                                                                                                        // whom to believe there, and as whom to come
	Headers     map[string]secure.Secret `yaml:"headers"`                                                                                                        // of each request, beside; default none
	Sample      float64                  `yaml:"sample" help:"share of what begins here that is traced, 0 to 1"`                                                 // default 0.01
	FromCallers bool                     `yaml:"from_callers"`                                                                                                   // callers' traceparent decides for their requests; default true
	Service     string                   `yaml:"service"`                                                                                                        // service.name of the spans, 1-128 bytes; default smartfeed
	Queue       int                      `yaml:"queue"`                                                                                                          // spans that wait to be sent, more are dropped, 1-1,000,000; default 8192
	Batch       int                      `yaml:"batch"`                                                                                                          // spans sent at once, 1-10,000; default 512
	Every       time.Duration            `yaml:"every"`                                                                                                          // at most between two sendings while there is something, 10ms-1m; default 1s
	Timeout     time.Duration            `yaml:"timeout"`                                                                                                        // of a sending with its repetitions, and of the last one when the process ends, 100ms-1m; default 5s
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{Sample: 0.01, FromCallers: true, Service: "smartfeed", Queue: 8192, Batch: 512, Every: time.Second, Timeout: 5 * time.Second}
}

// Validate reports every field that is out of its bounds.
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

// checkEndpoint says what is wrong with an address without repeating it: it may hold a password.
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

// url is where traces are posted: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request.
func (c Config) url() string {
	if u, err := url.Parse(c.Endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(c.Endpoint, "/") + "/v1/traces"
	}
	return c.Endpoint
}

// header is that of every request.
func (c Config) header() http.Header {
	h := http.Header{"Content-Type": {"application/x-protobuf"}, "User-Agent": {"smartfeed"}}
	for name, value := range c.Headers {
		h.Set(name, value.Reveal())
	}
	return h
}
