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
		Short: "Reprocess the log of pins with the current scoring rules",
		Long: `Reprocess the log of pins, so that publications get the quality (objects.quality_rules) and the half-life
(fanout.score_half_life) of the current configuration. Change the configuration, restart the processes, then replay.

For all users, or for all users in one source, the command reads the log twice, at --rate events per second. It recomputes
each pin's quality and its rank among a followee's recent publications. Then it builds a new generation of the pools, at
--users users per second, as "rebuild all --generation" does, and cuts over. Until then the pools keep their candidates.
Versions, counts, impressions and shown items do not change, so nothing is counted or shown twice.

For one user it processes the pins of the user's followees, and rebuilds the user's pools in place.

--since and --until select a span of the log by arrival. Use them if a rule was wrong for some time, but not if the half-life
changed. --resume continues an interrupted run with the same arguments; --rate and --users may differ. It does not continue a
generation of another command. --abort discards the generation that is being built, until its cut-over starts.

Candidates of related pins keep their scores. With --half-life, the current fanout.score_half_life, candidates that were
scored with another half-life are not carried over, and the command counts them.

--group NAME explains why the rows of another group cannot be recomputed. The number of partitions does not change. After
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
	cmd.Flags().StringVar(&f.since, "since", "", "process only events that arrived at this time or later, RFC 3339")
	cmd.Flags().StringVar(&f.until, "until", "", "process only events that arrived before this time, RFC 3339")
	cmd.Flags().Float64Var(&f.Rate, "rate", 2000, "events per second")
	cmd.Flags().Float64Var(&f.Users, "users", 200, "users per second whose pools are built, for all users")
	cmd.Flags().BoolVar(&f.Resume, "resume", false, "continue the last run with the same arguments")
	cmd.Flags().BoolVar(&f.abort, "abort", false, abortUsage)
	cmd.Flags().StringVar(&f.group, "group", topics.Pools, "group whose rows are recomputed")
	cmd.Flags().DurationVar(&f.HalfLife, "half-life", 0, "current fanout.score_half_life, if it has changed: candidates of related pins with other scores are not carried over")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, timeoutUsage)
}

// common returns the flags that rebuild also has.
func (f *replayFlags) common() rebuildFlags {
	o := generations.RebuildOptions{Target: f.Target, Rate: f.Rate, Resume: f.Resume}
	return rebuildFlags{RebuildOptions: o, timeout: f.timeout}
}

// check parses --since and --until, and reports every error in the flags.
func (f *replayFlags) check() error {
	problems := []error{f.common().check(), checkRate("users", f.Users)}
	if err := generations.CheckGroup(f.group); err != nil {
		problems = append(problems, fmt.Errorf("--group: %s: %w", f.group, err))
	}
	if f.HalfLife != 0 && (f.HalfLife < time.Minute || f.HalfLife > 365*24*time.Hour) {
		problems = append(problems, fmt.Errorf("--half-life: %s: want 1m to 8760h", f.HalfLife))
	}
	if f.abort && f.Target != generations.All {
		problems = append(problems, errors.New("--abort: only for the target all"))
	}
	var since, until error
	f.Since, since = parseTime("since", f.since)
	f.Until, until = parseTime("until", f.until)
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		until = errors.Join(until, fmt.Errorf("--since: %s is not before --until %s", f.since, f.until))
	}
	return errors.Join(append(problems, since, until)...)
}
