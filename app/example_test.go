package app_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
)

// Open embeds the whole pipeline in another program, here with a rule in Go. See also examples/embedded.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := app.DefaultConfig()
	cfg.Dir, cfg.HTTP, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", []string{"127.0.0.1:0"}, "127.0.0.1:0"
	cfg.Feed.GeneratorTimeout, cfg.Feed.AckTimeout = 10*time.Second, 10*time.Second // for busy machines
	own := generator.Extensions{Admit: func(_ schemas.UserID, _ string, c rules.Candidate) bool { return c.Author != "user:mallory" }}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p, err := app.Open(ctx, app.Options{Config: cfg, Extensions: own})
	if err != nil {
		fmt.Println(err)
		return
	}
	var running errgroup.Group
	running.Go(func() error { return p.Run(ctx) })
	if err := shown(ctx, p); err != nil {
		fmt.Println(err)
	}
	stop()
	if err := running.Wait(); err != nil {
		fmt.Println(err)
	}
	if err := p.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: pin:tea
}

// shown makes ada follow two users who create pins, and prints the feed of ada.
func shown(ctx context.Context, p *app.App) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	var events []schemas.Line
	for _, text := range []string{
		`{"stream":"follows","id":"1","time":1,"actor":"user:ada","verb":"follow","object":"user:bob"}`,
		`{"stream":"follows","id":"2","time":1,"actor":"user:ada","verb":"follow","object":"user:mallory"}`,
		`{"stream":"pins","id":"3","time":2,"actor":"user:bob","verb":"create","object":"pin:tea"}`,
		`{"stream":"pins","id":"4","time":2,"actor":"user:mallory","verb":"create","object":"pin:spam"}`,
	} {
		line, err := schemas.ParseLine([]byte(text))
		if err != nil {
			return err
		}
		events = append(events, line)
	}
	if err := p.Publish(ctx, events...); err != nil {
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
	for _, item := range page.Items {
		fmt.Println(item.ID)
	}
	return err
}
