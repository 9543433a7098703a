// Package bench runs `smartfeed bench`. Its benchmarks measure the write path of the home feed, from a pin to the pools of
// all followers of its author; `make bench-feed` runs them.
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/measure"
	publishing "github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/internal/tools/workload"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// Config configures Run.
type Config struct {
	Measure  measure.Config
	Workload workload.Config
	Rate     float64 // requests per second, of all kinds
}

// processTimeout limits the processing of the events before and after the measurement.
const processTimeout = 5 * time.Minute

// Run creates the data of the run, measures, and deletes the data. The server is on the brokers of setup.
func Run(ctx context.Context, setup topics.Setup, at client.Config, cfg Config) (_ []measure.Result, err error) {
	if _, err := topics.VerifyAll(ctx, setup.Kafka, topics.RoleOperate); err != nil { // with other topics, the wait for the published events would never end
		return nil, err
	}
	publisher, err := publishing.Open(ctx, setup)
	if err != nil {
		return nil, err
	}
	defer publisher.Close()
	server, err := client.New(at)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	requests := &workload.Requests{Config: cfg.Workload, Server: server, Publisher: publisher}
	if requests.Features, err = requests.KnownFeatures(ctx); err != nil {
		return nil, fmt.Errorf("request the features of the server at --http: %w", err)
	}
	defer func() { err = errors.Join(err, cleanUp(ctx, setup, publisher, cfg.Workload)) }()
	if err := prepare(ctx, setup, publisher, cfg.Workload); err != nil {
		return nil, err
	}
	return cfg.run(ctx, setup, requests)
}

// prepare publishes the data of the run and waits until it has been processed.
func prepare(ctx context.Context, s topics.Setup, to workload.Publisher, cfg workload.Config) error {
	lines := cfg.Load()
	task := s.Start(command.Count(len(cfg.People()), "user")+" and their pins", -1)
	defer task.Done()
	if err := to.Publish(ctx, lines); err != nil {
		return err
	}
	return publishing.WaitProcessed(ctx, s, processTimeout, task.Say)
}

// cleanUp deletes all users of the run, even if the run was interrupted.
func cleanUp(ctx context.Context, s topics.Setup, to workload.Publisher, cfg workload.Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), processTimeout)
	defer cancel()
	task := s.Start("delete them", -1)
	defer task.Done()
	if err := to.Publish(ctx, cfg.Delete()); err != nil {
		return fmt.Errorf("delete users of %s: %w", cfg.Prefix, err)
	}
	return publishing.WaitProcessed(ctx, s, processTimeout, task.Say)
}

// run measures.
func (c Config) run(ctx context.Context, s topics.Setup, requests *workload.Requests) ([]measure.Result, error) {
	loads, total := requests.Loads(c.Rate), 0
	for _, l := range loads {
		total += c.Measure.Requests(l.Rate)
	}
	task := s.Start("measure", total)
	defer task.Done()
	c.Measure.Done = func() { task.Add(1) }
	return measure.Run(ctx, c.Measure, loads...), context.Cause(ctx)
}

// Failures returns an error that lists the failed requests, or nil.
func Failures(results []measure.Result) error {
	var problems []error
	for _, r := range results {
		if r.Failed > 0 {
			problems = append(problems, fmt.Errorf("%d requests of %s failed, one of them: %w", r.Failed, r.Name, r.Failure))
		}
	}
	return errors.Join(problems...)
}
