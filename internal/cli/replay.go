package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/topics"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	generations.ReplayOptions
	since, until, group string
	abort               bool
	timeout             time.Duration
}

func (p *program) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay USER|following|interest|all",
		Short: "Process the log of pins again, with the present rules of scores",
		Long: `Process the log of pins again, so that publications get the quality (objects.quality_rules) and the time constant
(fanout.score_half_life) of the present configuration. Change the configuration, restart the processes, then replay.

For all users, or for all users in one source, it reads the log twice, --rate events a second, and computes each pin's quality
and its rank among a followee's recents again. Then it builds a new generation of the pools, --users users a second, as
"rebuild all --generation" does, and cuts over. Until then the pools keep their candidates. Versions, counts, impressions and
shown items do not change, so nothing is counted or shown twice.

For a user it processes the pins of the user's followees, and rebuilds the user's pools in place.

--since and --until (RFC 3339) select a span of the log by arrival. Use them if a rule was wrong for some time, but not if the
time constant changed. --resume continues an interrupted run with the same arguments; --rate and --users may differ. It does
not continue what another command is building. --abort aborts the generation that is being built, until its cut-over
starts. Candidates of related pins keep their scores. With --half-life, which is the present fanout.score_half_life, those that were
scored with another one are not carried over, and are counted.

--group NAME explains why the rows of another group cannot be computed again. The number of partitions does not change. After
--timeout the exit code is 1; published events still take effect.`,
		Example:           "  smartfeed replay all\n  smartfeed replay following --since 2026-11-01T00:00:00Z --rate 500 -o json\n  smartfeed replay user:ada",
		ValidArgsFunction: completeTargets,
		Args:              cobra.ExactArgs(1),
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			f.Target = generations.Target(args[0])
			if err := f.check(); err != nil {
				return nil, usage(err)
			}
			ctx, cancel := f.common().context(cmd.Context())
			defer cancel()
			if f.abort {
				return aborted(), generations.Abort(ctx, setup)
			}
			return generations.Replay(ctx, setup, f.ReplayOptions)
		}),
	}
	f.add(cmd)
	return cmd
}

func (f *replayFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "only events that arrived at this time or later")
	cmd.Flags().StringVar(&f.until, "until", "", "only events that arrived before this time")
	cmd.Flags().Float64Var(&f.Rate, "rate", 2000, "events a second")
	cmd.Flags().Float64Var(&f.Users, "users", 200, "users a second whose pools are built, of all users")
	cmd.Flags().BoolVar(&f.Resume, "resume", false, "continue the last run with the same arguments")
	cmd.Flags().BoolVar(&f.abort, "abort", false, abortUsage)
	cmd.Flags().StringVar(&f.group, "group", topics.Pools, "group whose rows are computed again")
	cmd.Flags().DurationVar(&f.HalfLife, "half-life", 0, "present fanout.score_half_life, if it has changed: candidates of related pins scored with another one are not carried over")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, timeoutUsage)
}

// common returns the flags that rebuild has, too.
func (f *replayFlags) common() rebuildFlags {
	o := generations.RebuildOptions{Target: f.Target, Rate: f.Rate, Resume: f.Resume}
	return rebuildFlags{RebuildOptions: o, timeout: f.timeout}
}

// check parses --since and --until, and reports every error in the flags.
func (f *replayFlags) check() error {
	problems := []error{f.common().check(), checkRate("users", f.Users)}
	if err := generations.CheckGroup(f.group); err != nil {
		problems = append(problems, fmt.Errorf("--group %s: %w", f.group, err))
	}
	if f.HalfLife != 0 && (f.HalfLife < time.Minute || f.HalfLife > 365*24*time.Hour) {
		problems = append(problems, fmt.Errorf("--half-life %s: from 1m to 8760h", f.HalfLife))
	}
	if f.abort && f.Target != generations.All {
		problems = append(problems, errors.New("--abort: only of all"))
	}
	var since, until error
	f.Since, since = parseTime("since", f.since)
	f.Until, until = parseTime("until", f.until)
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		until = errors.Join(until, fmt.Errorf("--since %s is not before --until %s", f.since, f.until))
	}
	return errors.Join(append(problems, since, until)...)
}
