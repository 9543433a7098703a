package product

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// Role is what of the pipeline a process does.
type Role string

// The roles, as the commands of the same names have them.
const (
	Dev         Role = "dev"         // everything, with a broker and a registry of its own
	Process     Role = "process"     // all groups that keep rows, and the content generator
	Serve       Role = "serve"       // what answers
	Materialize Role = "materialize" // feed stores on Cassandra
)

// Options are what a program gives to a product that it has in it.
type Options struct {
	Config Config       // DefaultConfig with changes
	Role   Role         // "": Dev
	Own    pools.Own    // sources, scoring and rules in Go; where the generator is: Dev and Process
	Log    *slog.Logger // nil: nothing is logged
}

// Product is the pipeline as a part of another program. Open it, Run it; Close it whether it ran or not.
type Product struct{ inner *product }

// Open opens every part, so that whatever is wrong with the machine or the configuration is said before anything runs.
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

// Run runs every part until ctx ends, and starts again what fails. It is called once.
func (p *Product) Run(ctx context.Context) error { return p.inner.Run(ctx) }

// Close closes everything that was opened, after Run has returned.
func (p *Product) Close() error { return p.inner.Close() }

// Ready returns nil once everything can be answered, or why ctx ended before. Run must be running.
func (p *Product) Ready(ctx context.Context) error {
	if p.inner.awaitReady(ctx) {
		return nil
	}
	return fmt.Errorf("not ready, %v: %w", p.inner.missing(), context.Cause(ctx))
}

// Addr is where the HTTP server listens, host:port.
func (p *Product) Addr() string { return p.inner.server.Addr() }

// Brokers are the addresses of the brokers, also of one that Dev has brought.
func (p *Product) Brokers() []string { return p.inner.kafka.Brokers }

// Client returns a client of this product's own HTTP server, as whoever the token in auth.token_file says; nobody in particular
// without one. Close it. It fails when a file of the configuration cannot be read.
func (p *Product) Client() (*client.Client, error) {
	token, err := p.inner.cfg.Auth.SentToken(nil)
	if err != nil {
		return nil, err
	}
	return p.ClientAs(token)
}

// ClientAs is Client with another token; "": none. Where the server has TLS (api.tls), its certificate is believed as peers.tls
// says: by the authorities and for the name that stand there, without them by those of the system and for the host of Addr.
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

// Publish puts events into their topics and returns nil once all are acknowledged; see topics.Publisher. An event that a
// door would refuse is refused, and then nothing is published.
func (p *Product) Publish(ctx context.Context, events ...schemas.Line) error {
	for i, e := range events {
		if err := e.Validate(schemas.MicrosOf(time.Now()), p.inner.cfg.Verbs); err != nil {
			return fmt.Errorf("publish event %d: %w", i+1, err)
		}
	}
	return p.inner.publisher.Publish(ctx, events)
}

// Wait returns once everything published before has had its effect, see topics.Wait and, where Pinot has the actions,
// topics.AwaitOutsiders.
func (p *Product) Wait(ctx context.Context) error {
	outsiders, err := p.inner.cfg.outsiders()
	if err != nil {
		return err
	}
	setup := topics.Setup{Kafka: p.inner.kafka, FeedStores: p.inner.cfg.FeedStore.others(), Outsiders: outsiders}
	return setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil)
}
