// Command embedded runs smartfeed inside another program, with a candidate source, a score and a rule in Go:
//
//	go run ./examples/embedded
//
// It publishes three pins, visits ada's feed, and prints which pins it shows and why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

// extensions returns a source, a score and a rule.
func extensions() generator.Extensions {
	return generator.Extensions{
		// A source: pins that an editor has selected for all users.
		Sources: []generator.ExtensionSource{{Name: "editors", Limit: 10, Share: 0.2, Offer: chosen}},
		// A score: pins with a picture of tea get a higher score.
		Score: func(_ context.Context, _ schemas.UserID, _ string, candidates []generator.Scored) (map[schemas.PinID]float64, error) {
			scores := map[schemas.PinID]float64{}
			for _, c := range candidates {
				if c.Pin == "pin:tea" {
					scores[c.Pin] = 5
				}
			}
			return scores, nil
		},
		// A rule: no pin by mallory is served. The pins stay in the pools.
		Admit: func(_ schemas.UserID, _ string, c rules.Candidate) bool { return c.Author != "user:mallory" },
	}
}

func chosen(context.Context, schemas.UserID, string, int) ([]schemas.Candidate, error) {
	return []schemas.Candidate{{
		Pin: "pin:chosen", Facets: schemas.Facets{Author: "user:editor"}, Created: schemas.MicrosOf(time.Now()), PoolScore: 1,
	}}, nil
}

// run starts smartfeed in a temporary directory, publishes events, visits a feed, and stops smartfeed.
func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "smartfeed-embedded-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := app.DefaultConfig()
	cfg.Dir, cfg.HTTP, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", []string{"127.0.0.1:0"}, "127.0.0.1:0"
	cfg.Feed.GeneratorTimeout = 10 * time.Second // for busy machines: the example shows the content of a page, not its latency
	p, err := app.Open(ctx, app.Options{Config: cfg, Extensions: extensions()})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	return p.RunAndClose(running, func(ctx context.Context) error {
		defer stop()
		return visit(ctx, p, out)
	})
}

func visit(ctx context.Context, p *app.App, out io.Writer) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	if err := p.Publish(ctx, events()...); err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		return err
	}
	c, err := p.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	page, err := c.Visit(ctx, "user:ada", client.VisitOptions{Limit: 10})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		fmt.Fprintln(out, item.ID, "from", item.Source)
	}
	why, err := c.Why(ctx, "user:ada", rules.Home, "pin:rejected")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "pin:rejected is", why.Fate, "because of", why.Reason)
	return err
}

// events returns the follows of three users by ada, and a pin by each of the three.
func events() []schemas.Line {
	var lines []schemas.Line
	now := time.Now()
	for i, created := range []struct {
		by  schemas.UserID
		pin schemas.ID
	}{{"user:bob", "pin:boat"}, {"user:carol", "pin:tea"}, {"user:mallory", "pin:rejected"}} {
		follow := &schemas.FollowEvent{Event: schemas.Event{
			ID: fmt.Sprint("follow-", i), Time: schemas.MicrosOf(now), Actor: "user:ada", Verb: schemas.Follow, Object: schemas.ID(created.by),
		}}
		pin := &schemas.PinEvent{Event: schemas.Event{
			ID: fmt.Sprint("pin-", i), Time: schemas.MicrosOf(now), Actor: created.by, Verb: schemas.Create, Object: created.pin,
		}}
		lines = append(lines, schemas.NewLine(follow), schemas.NewLine(pin))
	}
	return lines
}
