package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
)

// Options configure Open.
type Options struct {
	Config     Config               // DefaultConfig with changes
	File       ConfigFile           // to reload Config; zero: it is not reloaded
	Role       Role                 // "": Dev
	Groups     []string             // of the role Process; none: all groups
	Extensions generator.Extensions // sources, scoring and rules in Go; used by the generator, in Dev and Process
	Log        *slog.Logger         // nil: no log
}

// Open opens every part of a role. It reports problems of the machine or the configuration before anything runs.
func Open(ctx context.Context, o Options) (*App, error) {
	o.Role = cmp.Or(o.Role, Dev)
	parts, err := o.Role.parts(o.Groups)
	if err != nil {
		return nil, err
	}
	if err := o.Config.Check(o.Role, o.Groups...); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return openParts(ctx, o, parts)
}

// Ready returns nil once the App is ready. If ctx is done before, it returns an error with the components that are not ready.
// Run must be running.
func (p *App) Ready(ctx context.Context) error {
	if p.awaitReady(ctx) {
		return nil
	}
	return fmt.Errorf("wait until the app is ready: %v: %w", p.missing(), context.Cause(ctx))
}

// awaitReady reports whether the App became ready before ctx was done.
func (p *App) awaitReady(ctx context.Context) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(p.missing()) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Addr returns the address of the HTTP server, host:port.
func (p *App) Addr() string { return p.server.Addr() }

// URL returns the URL of the HTTP server, without a path.
func (p *App) URL() string { return p.server.Scheme() + "://" + p.Addr() }

// Brokers returns the addresses of the brokers, including an embedded one.
func (p *App) Brokers() []string { return p.kafka.Brokers }

// RegistryURL returns the URL of the schema registry, including an embedded one.
func (p *App) RegistryURL() string {
	if p.broker != nil {
		return p.broker.RegistryURL()
	}
	return p.cfg.registryURL()
}

// Client returns a client of this App's HTTP server with the token in auth.token_file. Without a token it is anonymous.
// The caller must close it. Client returns an error if a configured file cannot be read.
func (p *App) Client() (*client.Client, error) {
	token, err := p.cfg.Auth.SentToken(nil)
	if err != nil {
		return nil, err
	}
	return p.ClientAs(token)
}

// ClientAs is Client with another token; "": none. If the server uses TLS (api.tls), the client verifies its
// certificate with the authorities and the name in peers.tls. By default it uses the authorities of the system and the
// host of Addr.
func (p *App) ClientAs(token string) (*client.Client, error) {
	cfg := client.Config{Address: p.URL(), Token: token}
	if p.server.Scheme() == "https" {
		var err error
		if cfg.TLS, err = p.cfg.Peers.TLS.Config(); err != nil {
			return nil, fmt.Errorf("peers.tls: %w", err)
		}
	}
	return client.New(cfg)
}

// Publish publishes events and returns nil once the brokers have acknowledged all of them; see topics.Publisher. If an
// event is invalid, it returns an error and publishes nothing.
func (p *App) Publish(ctx context.Context, events ...schemas.Line) error {
	for i, e := range events {
		if err := e.Validate(schemas.MicrosOf(time.Now()), p.currentVerbs()); err != nil {
			return fmt.Errorf("publish event %d: %w", i+1, err)
		}
	}
	return p.publisher.Publish(ctx, events)
}

// Wait returns once the events that were published before the call have been processed; see topics.Wait and, if Pinot
// stores the actions, topics.AwaitExternalConsumers.
func (p *App) Wait(ctx context.Context) error {
	setup, err := p.Setup()
	if err != nil {
		return err
	}
	return setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil)
}
