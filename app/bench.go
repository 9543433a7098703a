package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/measure"
	publishing "github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/internal/tools/workload"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// benchFlags are the flags of `smartfeed bench`.
type benchFlags struct {
	measure           measure.Config
	workload          workload.Config
	rate              float64
	mix               []string
	asJSON, keep, bar bool
}

func (p *program) benchCommand() *cobra.Command {
	f := benchFlags{
		measure: measure.DefaultConfig(), workload: workload.DefaultConfig(strconv.FormatInt(time.Now().Unix(), 36)),
		rate: 100, mix: []string{"visits=60", "features=30", "publish=5", "actions=5"},
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure a running product: publish to pool, visits, features",
		Long: `Measure the product that serves at --http, on the brokers at --kafka: how long a new pin takes into its followers' pools, and
how fast visits and requests for features are answered, at a stated rate in a stated mix.

Requests are made at their times whatever became of those before, and latencies count from when a request was due: a
stall shows in all that were due in it. What is asked with "publish" is a fan-out to all --users.

Users and pins of the run are its own, under --prefix, and are deleted at the end as "smartfeed erase" does it: no answer
has them then; their events stay in the logs as long as others do. --keep leaves them.

This program takes CPU, too: for numbers of the product alone run it on another machine.`,
		Example: "  smartfeed bench --for 30s --rate 200\n  smartfeed bench --mix publish=1 --rate 50 --users 1000 --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rates, err := f.rates()
			if err != nil {
				return &command.UsageError{Err: err}
			}
			return p.bench(cmd, f, rates)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.rate, "rate", f.rate, "requests a second, all kinds together")
	flags.StringSliceVar(&f.mix, "mix", f.mix, "share of each kind: "+strings.Join(workload.Kinds(), ", "))
	flags.DurationVar(&f.measure.Lasting, "for", f.measure.Lasting, "how long, after the warm-up")
	flags.DurationVar(&f.measure.WarmUp, "warm-up", f.measure.WarmUp, "how long before anything counts")
	flags.DurationVar(&f.measure.Timeout, "timeout", f.measure.Timeout, "of one request")
	flags.IntVar(&f.workload.Users, "users", f.workload.Users, "readers; each follows every author")
	flags.IntVar(&f.workload.Pins, "pins", f.workload.Pins, "of each author at first")
	flags.IntVar(&f.workload.Limit, "limit", f.workload.Limit, "items of a visit")
	flags.StringVar(&f.workload.Prefix, "prefix", f.workload.Prefix, "of the names of users and pins; never the same twice")
	flags.BoolVar(&f.keep, "keep", false, "leave users and pins")
	flags.BoolVar(&f.bar, "histogram", false, "print how latencies are distributed")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON, with histograms")
	return cmd
}

// rates returns the rate of each kind of request, or all problems of the flags.
func (f benchFlags) rates() (map[string]float64, error) {
	var problems []error
	if f.rate <= 0 || f.rate > 1e6 {
		problems = append(problems, fmt.Errorf("--rate %g: want more than 0, at most 1000000", f.rate))
	}
	for name, d := range map[string]time.Duration{"for": f.measure.Lasting, "timeout": f.measure.Timeout} {
		if d <= 0 {
			problems = append(problems, fmt.Errorf("--%s %s: must be positive", name, d))
		}
	}
	if f.measure.WarmUp < 0 {
		problems = append(problems, fmt.Errorf("--warm-up %s: must not be negative", f.measure.WarmUp))
	}
	rates, sum := map[string]float64{}, 0.0
	for _, part := range f.mix {
		kind, text, _ := strings.Cut(part, "=")
		share, err := strconv.ParseFloat(text, 64)
		switch {
		case !slices.Contains(workload.Kinds(), kind):
			problems = append(problems, fmt.Errorf("--mix %s: there is no %q, but %s", part, kind, strings.Join(workload.Kinds(), ", ")))
		case err != nil || !(share >= 0 && share <= 1e6):
			problems = append(problems, fmt.Errorf("--mix %s: want KIND=SHARE, a number", part))
		}
		rates[kind] += share
		sum += share
	}
	if sum == 0 {
		problems = append(problems, errors.New("--mix: all shares are 0"))
	}
	for kind := range rates {
		rates[kind] *= f.rate / sum
	}
	return rates, errors.Join(append(problems, f.workload.Validate())...)
}

// workOffTimeout limits the processing of the events before and after the measurement.
const workOffTimeout = 5 * time.Minute

// bench creates the data of the run, measures, and deletes the data.
func (p *program) bench(cmd *cobra.Command, f benchFlags, rates map[string]float64) (err error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return err
	}
	at, err := p.asked(cfg)
	if err != nil {
		return err
	}
	setup, err := p.setup(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if _, err := topics.VerifyAll(ctx, setup.Kafka, topics.RoleOperate); err != nil { // otherwise the wait for the published events would never end
		return err
	}
	publisher, err := publishing.Open(ctx, setup)
	if err != nil {
		return err
	}
	defer publisher.Close()
	server, err := client.New(at)
	if err != nil {
		return err
	}
	defer server.Close()
	requests := &workload.Requests{Config: f.workload, Server: server, Publisher: publisher}
	if requests.Features, err = requests.KnownFeatures(ctx); err != nil {
		return fmt.Errorf("ask what is served at --http: %w", err)
	}
	if !f.keep {
		defer func() { err = errors.Join(err, cleanUp(ctx, setup, publisher, f.workload)) }()
	}
	if err := prepare(ctx, setup, publisher, f.workload); err != nil {
		return err
	}
	results, err := f.run(ctx, setup, requests, rates)
	if err != nil {
		return err
	}
	return errors.Join(f.print(cmd.OutOrStdout(), results), failures(results))
}

// prepare publishes the data of the run and waits until it has been processed.
func prepare(ctx context.Context, s topics.Setup, to workload.Publisher, cfg workload.Config) error {
	lines := cfg.Load()
	task := s.Start(command.Count(len(cfg.People()), "user")+" and their pins", -1)
	defer task.Done()
	if err := to.Publish(ctx, lines); err != nil {
		return err
	}
	return publishing.WorkOff(ctx, s, workOffTimeout, task.Say)
}

// cleanUp deletes all users of the run, even if the run was interrupted.
func cleanUp(ctx context.Context, s topics.Setup, to workload.Publisher, cfg workload.Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workOffTimeout)
	defer cancel()
	task := s.Start("delete them", -1)
	defer task.Done()
	if err := to.Publish(ctx, cfg.Delete()); err != nil {
		return fmt.Errorf("delete users of %s: %w", cfg.Prefix, err)
	}
	return publishing.WorkOff(ctx, s, workOffTimeout, task.Say)
}

func (f benchFlags) run(ctx context.Context, s topics.Setup, requests *workload.Requests, rates map[string]float64) ([]measure.Result, error) {
	var loads []measure.Load
	total := 0
	for _, kind := range workload.Kinds() {
		if rates[kind] == 0 {
			continue
		}
		l, err := requests.Load(kind, rates[kind])
		if err != nil {
			return nil, err
		}
		loads = append(loads, l)
		total += f.measure.Requests(rates[kind])
	}
	task := s.Start("measure", total)
	defer task.Done()
	f.measure.Done = func() { task.Add(1) }
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	watches.Go(func() { requests.Watch(watching) })
	results := measure.Run(ctx, f.measure, loads...)
	stop()
	watches.Wait()
	return results, context.Cause(ctx)
}

// failures returns an error that lists the failed requests, or nil.
func failures(results []measure.Result) error {
	var problems []error
	for _, r := range results {
		if r.Failed > 0 {
			problems = append(problems, fmt.Errorf("%d of %s failed, one of them: %w", r.Failed, r.Name, r.Failure))
		}
	}
	return errors.Join(problems...)
}

// quantiles are the reported quantiles.
var quantiles = [...]struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

func (f benchFlags) print(out io.Writer, results []measure.Result) error {
	if f.asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{
			"version": version, "prefix": f.workload.Prefix, "users": f.workload.Users, "seconds": f.measure.Lasting.Seconds(),
			"warm_up_seconds": f.measure.WarmUp.Seconds(), "loads": reports(results),
		})
	}
	fmt.Fprintf(out, "%-10s %9s %9s %9s %9s %7s", "", "asked/s", "done/s", "answered", "degraded", "failed")
	for _, q := range quantiles {
		fmt.Fprintf(out, " %9s", q.name)
	}
	fmt.Fprintf(out, " %9s\n", "max")
	for _, r := range results {
		fmt.Fprintf(out, "%-10s %9.1f %9.1f %9d %9d %7d", r.Name, r.Rate, r.Done, r.Answered, r.Degraded, r.Failed)
		for _, q := range quantiles {
			fmt.Fprintf(out, " %9s", short(r.Latency.Quantile(q.q)))
		}
		fmt.Fprintf(out, " %9s\n", short(r.Latency.Max()))
	}
	if f.bar {
		for _, r := range results {
			bars(out, r)
		}
	}
	_, err := fmt.Fprintf(out, "latencies count from when a request was due; %s readers, %s after %s of warm-up\n",
		strconv.Itoa(f.workload.Users), f.measure.Lasting, f.measure.WarmUp)
	return err
}

// short formats a latency with three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// bars prints a histogram of the latencies by powers of two.
func bars(out io.Writer, r measure.Result) {
	counts, tops := map[time.Duration]int64{}, []time.Duration{}
	for _, b := range r.Latency.Buckets() {
		top := time.Microsecond
		for top < b.UpTo {
			top *= 2
		}
		if counts[top] == 0 {
			tops = append(tops, top)
		}
		counts[top] += b.Count
	}
	fmt.Fprintf(out, "%s\n", r.Name)
	for _, top := range tops {
		const width = 60
		n := int(counts[top] * width / max(r.Answered, 1))
		fmt.Fprintf(out, "  to %9s %8d %s\n", short(top), counts[top], strings.Repeat("█", n))
	}
}

// benchReport is a result in JSON. Latencies are in milliseconds.
type benchReport struct {
	Name      string             `json:"name"`
	Rate      float64            `json:"asked_per_second"`
	Done      float64            `json:"done_per_second"`
	Answered  int64              `json:"answered"`
	Degraded  int64              `json:"degraded"`
	Failed    int64              `json:"failed"`
	Mean      float64            `json:"mean_ms"`
	Max       float64            `json:"max_ms"`
	Quantiles map[string]float64 `json:"quantiles_ms"`
	Histogram []benchBucket      `json:"histogram"`
}

type benchBucket struct {
	UpTo  float64 `json:"up_to_ms"`
	Count int64   `json:"count"`
}

func reports(results []measure.Result) []benchReport {
	all := []benchReport{}
	for _, r := range results {
		one := benchReport{
			Name: r.Name, Rate: r.Rate, Done: r.Done, Answered: r.Answered, Degraded: r.Degraded, Failed: r.Failed,
			Mean: millis(r.Latency.Mean()), Max: millis(r.Latency.Max()), Quantiles: map[string]float64{}, Histogram: []benchBucket{},
		}
		for _, q := range quantiles {
			one.Quantiles[q.name] = millis(r.Latency.Quantile(q.q))
		}
		for _, b := range r.Latency.Buckets() {
			one.Histogram = append(one.Histogram, benchBucket{millis(b.UpTo), b.Count})
		}
		all = append(all, one)
	}
	return all
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
