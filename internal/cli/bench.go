package cli

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tools/bench"
	"github.com/smartfeed/smartfeed/internal/tools/workload"
	"github.com/smartfeed/smartfeed/topics"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	bench.Config
	rate      float64
	mix       []string
	histogram bool
}

func (p *program) benchCommand() *cobra.Command {
	f := &benchFlags{
		Config: bench.Config{
			Measure: measure.DefaultConfig(), Workload: workload.DefaultConfig(strconv.FormatInt(time.Now().Unix(), 36)),
		},
		rate: 100, mix: []string{"visits=60", "features=30", "publish=5", "actions=5"},
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the latencies of a running server",
		Long: `Measure the server at --http with the brokers at --kafka: the time that a new pin takes to reach its followers' pools, and the
latency of visits and feature requests. The load has a constant rate and a given mix.

The command sends each request at its scheduled time, whether or not earlier ones are answered. Latencies count from the
scheduled time, so a stall shows in all requests that were due during it. A "publish" is a fan-out to all --users.

The command creates its own users and pins, with --prefix, and deletes them at the end as "smartfeed erase" does. Their events
stay in the logs until their retention expires. --keep keeps the users and pins.

To measure the server without the CPU time of this command, run it on another machine.`,
		Example: "  smartfeed bench --for 30s --rate 200\n  smartfeed bench --mix publish=1 --rate 50 --users 1000 -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			var err error
			if f.Rates, err = f.rates(); err != nil {
				return nil, usage(err)
			}
			at, err := p.server(cmd)
			if err != nil {
				return nil, err
			}
			results, err := bench.Run(cmd.Context(), setup, at, f.Config)
			if err != nil {
				return nil, err
			}
			report := bench.NewReport(app.Version(), f.Config, results)
			return output{value: report, text: func(out io.Writer) error { return report.Text(out, f.histogram) }, failure: bench.Failures(results)}, nil
		}),
	}
	f.add(cmd)
	return cmd
}

func (f *benchFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float64Var(&f.rate, "rate", f.rate, "requests per second, of all kinds")
	flags.StringSliceVar(&f.mix, "mix", f.mix, "share of each kind of request: "+strings.Join(workload.Kinds(), ", "))
	flags.DurationVar(&f.Measure.Lasting, "for", f.Measure.Lasting, "duration of the measurement, after the warm-up")
	flags.DurationVar(&f.Measure.WarmUp, "warm-up", f.Measure.WarmUp, "duration of the warm-up, whose requests do not count")
	flags.DurationVar(&f.Measure.Timeout, "timeout", f.Measure.Timeout, "timeout of a request")
	flags.IntVar(&f.Workload.Users, "users", f.Workload.Users, "number of readers; each follows every author")
	flags.IntVar(&f.Workload.Pins, "pins", f.Workload.Pins, "number of initial pins per author")
	flags.IntVar(&f.Workload.Limit, "limit", f.Workload.Limit, "items per visit")
	flags.StringVar(&f.Workload.Prefix, "prefix", f.Workload.Prefix, "prefix of the names of users and pins; use each prefix once")
	flags.Lookup("prefix").DefValue = "the time of the start" // the help must not change from run to run
	flags.BoolVar(&f.Keep, "keep", false, "keep the created users and pins")
	flags.BoolVar(&f.histogram, "histogram", false, "print the distribution of the latencies")
}

// rates returns the rate of each kind of request, or all problems of the flags.
func (f *benchFlags) rates() (map[string]float64, error) {
	var problems settings.Problems
	problems.Want(f.rate > 0 && f.rate <= 1e6, "--rate: %g: want above 0, at most 1000000", f.rate)
	problems.Want(f.Measure.Lasting > 0, "--for: %s: want above 0", f.Measure.Lasting)
	problems.Want(f.Measure.Timeout > 0, "--timeout: %s: want above 0", f.Measure.Timeout)
	problems.Want(f.Measure.WarmUp >= 0, "--warm-up: %s: want 0 or more", f.Measure.WarmUp)
	rates, sum := map[string]float64{}, 0.0
	for _, part := range f.mix {
		kind, text, _ := strings.Cut(part, "=")
		share, err := strconv.ParseFloat(text, 64)
		known := slices.Contains(workload.Kinds(), kind)
		problems.Want(known, "--mix: %s: kind %q: want one of %s", part, kind, strings.Join(workload.Kinds(), ", "))
		problems.Want(!known || err == nil && share >= 0 && share <= 1e6, "--mix: %s: want KIND=SHARE with a number", part)
		rates[kind] += share
		sum += share
	}
	problems.Want(sum != 0, "--mix: all shares are 0")
	problems.Add(f.Workload.Validate())
	for kind := range rates {
		rates[kind] *= f.rate / sum
	}
	return rates, problems.Err()
}
