package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/measure"
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
		Args:    noArguments,
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
	var problems []error
	if f.rate <= 0 || f.rate > 1e6 {
		problems = append(problems, fmt.Errorf("--rate: %g: want above 0, at most 1000000", f.rate))
	}
	for name, d := range map[string]time.Duration{"for": f.Measure.Lasting, "timeout": f.Measure.Timeout} {
		if d <= 0 {
			problems = append(problems, fmt.Errorf("--%s: %s: want above 0", name, d))
		}
	}
	if f.Measure.WarmUp < 0 {
		problems = append(problems, fmt.Errorf("--warm-up: %s: want 0 or more", f.Measure.WarmUp))
	}
	rates, sum := map[string]float64{}, 0.0
	for _, part := range f.mix {
		kind, text, _ := strings.Cut(part, "=")
		share, err := strconv.ParseFloat(text, 64)
		switch {
		case !slices.Contains(workload.Kinds(), kind):
			problems = append(problems, fmt.Errorf("--mix: %s: kind %q: want one of %s", part, kind, strings.Join(workload.Kinds(), ", ")))
		case err != nil || !(share >= 0 && share <= 1e6):
			problems = append(problems, fmt.Errorf("--mix: %s: want KIND=SHARE with a number", part))
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
	return rates, errors.Join(append(problems, f.Workload.Validate())...)
}
