package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/cli"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/topics"
)

// processingTimeout limits the wait for the processing of events.
const processingTimeout = 5 * time.Minute

// product is a running process.
type product struct {
	*app.App
	t   *testing.T
	cfg app.Config
}

// testConfig returns a configuration with free ports, and long timeouts for busy machines.
func testConfig(t *testing.T) app.Config {
	t.Helper()
	const timeout = 30 * time.Second
	cfg := app.DefaultConfig()
	cfg.Feed.GeneratorTimeout, cfg.Feed.ReadTimeout, cfg.Feed.CatchUpTimeout, cfg.Feed.AckTimeout = timeout, timeout, timeout, timeout
	cfg.Feature.Timeout = timeout
	cfg.Dir, cfg.HTTP, cfg.Kafka, cfg.Registry = t.TempDir(), child.FreeAddress(t), []string{"127.0.0.1:0"}, child.FreeAddress(t)
	return cfg
}

// start runs a role until the test ends, and waits until it is ready.
func start(t *testing.T, role app.Role, cfg app.Config) *product {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	p := must.Get(app.Open(t.Context(), app.Options{Config: cfg, Role: role, Log: log}))(t)
	stop := topicstest.Run(t, p.Run)
	t.Cleanup(func() { expect.Error(t, errors.Join(stop(), p.Close()), "", "stop") })
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.OK(t, p.Ready(ready))
	return &product{p, t, cfg}
}

// run executes a command with variables, and returns its output. what describes the variables.
func run(t *testing.T, what string, environ []string, args ...string) string {
	t.Helper()
	var out, problems strings.Builder
	code := cli.Execute(t.Context(), args, environ, strings.NewReader(""), &out, &problems)
	expect.Equal(t, code, 0, "%s: %q: exit code with %s%s", what, args, &out, &problems)
	return out.String()
}

// url returns the URL of a path.
func (p *product) url(path string) string { return "http://" + p.Addr() + path }

// wait waits until all published events have been processed.
func (p *product) wait() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), processingTimeout)
	defer cancel()
	must.OK(p.t, p.Wait(ctx))
}

// publish posts events to the API.
func (p *product) publish(events ...map[string]any) {
	p.t.Helper()
	var body bytes.Buffer
	for _, e := range events {
		must.OK(p.t, json.NewEncoder(&body).Encode(e))
	}
	res := must.Get(http.Post(p.url("/v1/events"), "application/x-ndjson", &body))(p.t)
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
		p.t.Fatalf("events: %d %s", res.StatusCode, text)
	}
}

// get decodes a response of the API.
func get[T any](p *product, path string) (response T) {
	p.t.Helper()
	res := must.Get(http.Get(p.url(path)))(p.t)
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&response); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
	return response
}

// simulate loads users and pins, and makes the users act until the test ends. The first actions are those of user:ada.
func (p *product) simulate() {
	p.t.Helper()
	setup := topics.Setup{
		Kafka:    topics.Kafka{Brokers: p.Brokers(), Partitions: topics.EmbeddedPartitions, Embedded: true},
		Registry: p.cfg.Registry, Verbs: p.cfg.Verbs, Log: slog.New(slog.DiscardHandler),
	}
	cfg := simulate.DefaultConfig()
	cfg.Users, cfg.Pins, cfg.Interests = 60, 600, 16
	ctx, stop := context.WithCancel(context.Background())
	loaded, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := simulate.Run(ctx, setup, cfg, simulate.Forever, func(context.Context) error { close(loaded); return nil })
		done <- err
	}()
	p.t.Cleanup(func() {
		stop()
		must.OK(p.t, <-done)
	})
	select {
	case <-loaded:
	case err := <-done:
		p.t.Fatalf("simulate: %v", err)
	}
	p.wait()
	var actions []map[string]any
	for i, item := range get[pinList](p, "/v1/users/user:ada/pools?source=following&limit=12").Items {
		actions = append(actions, map[string]any{
			"stream": "actions", "verb": []string{"click", "save", "view"}[i%3], "actor": "user:ada", "object": item.Pin,
			"id": fmt.Sprint("ada-", i), "time": time.Now().Format(time.RFC3339Nano),
		})
	}
	p.publish(actions...)
}
