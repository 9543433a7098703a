package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// Role is the part of the pipeline that a process runs.
type Role string

// The roles. Each is also a command.
const (
	Dev         Role = "dev"         // everything, with its own broker and registry
	Process     Role = "process"     // all groups with rows, and the content generator
	Serve       Role = "serve"       // the HTTP API
	Materialize Role = "materialize" // fills feed stores on Cassandra
)

// Options configure a product that is embedded in another program.
type Options struct {
	Config Config               // DefaultConfig with changes
	Role   Role                 // "": Dev
	Own    generator.Extensions // sources, scoring and rules in Go; used by the generator, in Dev and Process
	Log    *slog.Logger         // nil: no log
}

// Product is the pipeline as a part of another program. Call Open, then Run. Call Close even if Run was not called.
type Product struct{ inner *product }

// Open opens every part. It reports problems of the machine or the configuration before anything runs.
func Open(ctx context.Context, o Options) (*Product, error) {
	cfg := o.Config
	if o.Role == "" {
		o.Role = Dev
	}
	pieces, err := o.Role.pieces()
	if err != nil {
		return nil, err
	}
	if err := cfg.check(o.Role); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	inner, err := openWith(ctx, cfg, o.Own, o.Log, pieces)
	if err != nil {
		return nil, err
	}
	return &Product{inner}, nil
}

func (r Role) pieces() ([]opener, error) {
	switch r {
	case Dev:
		return everything(), nil
	case Process:
		return processing(topics.RowGroups()), nil
	case Serve:
		return serving(), nil
	case Materialize:
		return materializing(), nil
	}
	return nil, fmt.Errorf("there is no role %q, but %s, %s, %s, %s", r, Dev, Process, Serve, Materialize)
}

// Run runs every part until ctx is done, and restarts parts that fail. It must be called only once.
func (p *Product) Run(ctx context.Context) error { return p.inner.Run(ctx) }

// Close closes everything that Open opened. Call it after Run has returned.
func (p *Product) Close() error { return p.inner.Close() }

// Ready returns nil once the product is ready, or an error with the cause if ctx is done before. Run must be running.
func (p *Product) Ready(ctx context.Context) error {
	if p.inner.awaitReady(ctx) {
		return nil
	}
	return fmt.Errorf("not ready, %v: %w", p.inner.missing(), context.Cause(ctx))
}

// Addr returns the address of the HTTP server, host:port.
func (p *Product) Addr() string { return p.inner.server.Addr() }

// Brokers returns the addresses of the brokers, including an embedded one.
func (p *Product) Brokers() []string { return p.inner.kafka.Brokers }

// Client returns a client of this product's HTTP server with the token in auth.token_file. Without a token it is
// anonymous. The caller must close it. Client returns an error if a configured file cannot be read.
func (p *Product) Client() (*client.Client, error) {
	token, err := p.inner.cfg.Auth.SentToken(nil)
	if err != nil {
		return nil, err
	}
	return p.ClientAs(token)
}

// ClientAs is Client with another token; "": none. If the server uses TLS (api.tls), the client verifies its
// certificate with the authorities and the name in peers.tls. By default it uses the authorities of the system and the
// host of Addr.
func (p *Product) ClientAs(token string) (*client.Client, error) {
	cfg := client.Config{Address: p.inner.server.Scheme() + "://" + p.Addr(), Token: token}
	if p.inner.server.Scheme() == "https" {
		var err error
		if cfg.TLS, err = p.inner.cfg.Peers.TLS.Config(); err != nil {
			return nil, fmt.Errorf("peers.tls: %w", err)
		}
	}
	return client.New(cfg)
}

// Publish publishes events and returns nil once all are acknowledged; see topics.Publisher. If one of them is invalid,
// it returns an error and publishes nothing.
func (p *Product) Publish(ctx context.Context, events ...schemas.Line) error {
	for i, e := range events {
		if err := e.Validate(schemas.MicrosOf(time.Now()), p.inner.cfg.Verbs); err != nil {
			return fmt.Errorf("publish event %d: %w", i+1, err)
		}
	}
	return p.inner.publisher.Publish(ctx, events)
}

// Wait returns once all events published before have been processed; see topics.Wait and, if Pinot has the actions,
// topics.AwaitOutsiders.
func (p *Product) Wait(ctx context.Context) error {
	outsiders, err := p.inner.cfg.outsiders()
	if err != nil {
		return err
	}
	setup := topics.Setup{Kafka: p.inner.kafka, FeedStores: p.inner.cfg.FeedStore.others(), Outsiders: outsiders}
	return setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil)
}
