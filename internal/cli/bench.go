package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tools/bench"
	"github.com/smartfeed/smartfeed/internal/tools/workload"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) benchCommand() *cobra.Command {
	cfg := bench.Config{
		Measure: measure.DefaultConfig(), Workload: workload.DefaultConfig(strconv.FormatInt(time.Now().Unix(), 36)), Rate: 100,
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the latencies of a running server",
		Long: `Measure the server at --http with the brokers at --kafka: the time that a new pin takes to reach its followers' pools, and the
latency of visits and feature requests. The load has a constant rate: 60 % visits, 30 % feature requests, 5 % new pins and 5 %
actions.

The command sends each request at its scheduled time, whether or not earlier ones are answered. Latencies count from the
scheduled time, so a stall shows in all requests that were due during it. A "publish" is a fan-out to all --users.

The command creates its own users and pins, with --prefix, and deletes them at the end as "smartfeed erase" does. Their events
stay in the logs until their retention expires.

To measure the server without the CPU time of this command, run it on another machine.`,
		Example: "  smartfeed bench --for 30s --rate 200\n  smartfeed bench --rate 50 --users 1000 -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			if err := checkBench(cfg); err != nil {
				return nil, usage(err)
			}
			at, err := p.server(cmd)
			if err != nil {
				return nil, err
			}
			results, err := bench.Run(cmd.Context(), setup, at, cfg)
			if err != nil {
				return nil, err
			}
			return output{value: bench.NewReport(app.Version(), cfg, results), failure: bench.Failures(results)}, nil
		}),
	}
	addBenchFlags(cmd.Flags(), &cfg)
	return cmd
}

func addBenchFlags(flags *pflag.FlagSet, cfg *bench.Config) {
	flags.Float64Var(&cfg.Rate, "rate", cfg.Rate, "requests per second, of all kinds")
	flags.DurationVar(&cfg.Measure.Lasting, "for", cfg.Measure.Lasting, "duration of the measurement, after the warm-up")
	flags.DurationVar(&cfg.Measure.WarmUp, "warm-up", cfg.Measure.WarmUp, "duration of the warm-up, whose requests do not count")
	flags.DurationVar(&cfg.Measure.Timeout, "timeout", cfg.Measure.Timeout, "timeout of a request")
	flags.IntVar(&cfg.Workload.Users, "users", cfg.Workload.Users, "number of readers; each follows every author")
	flags.IntVar(&cfg.Workload.Pins, "pins", cfg.Workload.Pins, "number of initial pins per author")
	flags.IntVar(&cfg.Workload.Limit, "limit", cfg.Workload.Limit, "items per visit")
	flags.StringVar(&cfg.Workload.Prefix, "prefix", cfg.Workload.Prefix, "prefix of the names of users and pins; use each prefix once")
	flags.Lookup("prefix").DefValue = "the time of the start" // the help must not change from run to run
}

// checkBench returns all problems of the flags.
func checkBench(cfg bench.Config) error {
	var problems settings.Problems
	problems.Want(cfg.Rate > 0 && cfg.Rate <= 1e6, "--rate: %g: want above 0, at most 1000000", cfg.Rate)
	problems.Want(cfg.Measure.Lasting > 0, "--for: %s: want above 0", cfg.Measure.Lasting)
	problems.Want(cfg.Measure.Timeout > 0, "--timeout: %s: want above 0", cfg.Measure.Timeout)
	problems.Want(cfg.Measure.WarmUp >= 0, "--warm-up: %s: want 0 or more", cfg.Measure.WarmUp)
	problems.Add(cfg.Workload.Validate())
	return problems.Err()
}
